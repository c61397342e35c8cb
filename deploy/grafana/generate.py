"""Writes the dashboards: ``python -m deploy.grafana.generate`` in the repository's root."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import agents, collector, judge, session

FOLDER = Path(__file__).parent / "dashboards"
_BUILDERS = {"agents": agents.build, "session": session.build, "judge": judge.build, "collector": collector.build}


def dashboards() -> dict[str, str]:
    """Return each file's text by name."""
    found = {}
    for name, build in _BUILDERS.items():
        made = json.loads(json.dumps(build().build(), cls=JSONEncoder))
        everything = (each for panel in made["panels"] for each in (panel, *panel.get("panels", ())))
        for number, panel in enumerate(everything, 1):
            panel["id"] = number
        found[f"{name}.json"] = json.dumps(made, indent=1, sort_keys=True) + "\n"
    return found


if __name__ == "__main__":
    for file, text in dashboards().items():
        (FOLDER / file).write_text(text)

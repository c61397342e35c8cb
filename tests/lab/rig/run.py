"""Makes golden captures: real frameworks, real instrumentations, a scripted model.

    python tests/lab/rig/run.py [SET ...] [--scenario NAME ...]

For each set of ``frameworks.toml``: an environment under ``tests/lab/rig/venvs``, one process per scenario, and the
OTLP requests of that process in ``tests/golden/captures/SET/SCENARIO.otlp.jsonl``. The sets of ``hosted.toml`` play the
sessions in ``HOSTED``; their captures lie in ``tests/golden/hosted``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.rig.environment import Framework, frameworks
from tests.lab.rig.play import Stage, as_lines
from tests.lab.rig.scenarios import HOSTED, SCENARIOS, SCRIPTS, Scenario

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def main() -> int:
    """Run what was asked for; 1 when a run did not end as its scenario says."""
    ordinary, hosted = frameworks(), frameworks("hosted.toml")
    names = [*ordinary, *hosted]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of: {', '.join(names)}")
    parser.add_argument("--scenario", action="append", choices=SCRIPTS, help="may be repeated; default: all")
    arguments = parser.parse_args()
    failed = 0
    with Stage(SCRIPTS) as stage:
        for name in arguments.sets or names:
            scenarios, folder = (SCENARIOS, GOLDEN / "captures") if name in ordinary else (HOSTED, GOLDEN / "hosted")
            wanted = {key: scenarios[key] for key in arguments.scenario or scenarios if key in scenarios}
            failed += run_set(stage, {**ordinary, **hosted}[name], wanted, folder)
    return 1 if failed else 0


def run_set(stage: Stage, framework: Framework, scenarios: Mapping[str, Scenario], folder: Path) -> int:
    """Write the captures of one set and its versions; how many runs failed."""
    failed = 0
    framework.install()
    for name, scenario in scenarios.items():
        path = folder / framework.name / f"{name}.otlp.jsonl"
        if name in framework.skip:
            path.unlink(missing_ok=True)
            continue
        run = stage.play(framework, name, scenario)
        print(f"{framework.name}/{name}: {run.summary}", flush=True)
        if run.failed:
            failed += 1
            print(run.log, file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_lines(run.requests))
    record_versions(framework, folder / "VERSIONS.json")
    return failed


def record_versions(framework: Framework, path: Path) -> None:
    """Update the set's entry in VERSIONS.json with what is installed."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known[framework.name] = framework.versions()
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

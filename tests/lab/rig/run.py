"""Makes golden captures: real frameworks, real instrumentations, a scripted model.

    python tests/lab/rig/run.py [SET ...] [--scenario NAME ...]

For each set of ``frameworks.toml``: an environment under ``tests/lab/rig/venvs``, one process per scenario, and the
OTLP requests of that process in ``tests/golden/captures/SET/SCENARIO.otlp.jsonl``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.rig.environment import Framework, frameworks
from tests.lab.rig.play import Stage, as_lines
from tests.lab.rig.scenarios import SCENARIOS

CAPTURES = Path(__file__).resolve().parents[2] / "golden" / "captures"


def main() -> int:
    """Run what was asked for; 1 when a run did not end as its scenario says."""
    sets = frameworks()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of: {', '.join(sets)}")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="may be repeated; default: all")
    arguments = parser.parse_args()
    failed = 0
    with Stage({name: scenario.dialogue for name, scenario in SCENARIOS.items()}) as stage:
        for name in arguments.sets or sets:
            failed += run_set(stage, sets[name], arguments.scenario or list(SCENARIOS))
    return 1 if failed else 0


def run_set(stage: Stage, framework: Framework, scenarios: list[str]) -> int:
    """Write the captures of one set and its versions; how many runs failed."""
    failed = 0
    framework.install()
    for name in scenarios:
        path = CAPTURES / framework.name / f"{name}.otlp.jsonl"
        if name in framework.skip:
            path.unlink(missing_ok=True)
            continue
        run = stage.play(framework, name, SCENARIOS[name])
        print(f"{framework.name}/{name}: {run.summary}", flush=True)
        if run.failed:
            failed += 1
            print(run.log, file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_lines(run.requests))
    record_versions(framework)
    return failed


def record_versions(framework: Framework) -> None:
    """Update the set's entry in VERSIONS.json with what is installed."""
    path = CAPTURES / "VERSIONS.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[framework.name] = framework.versions()
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

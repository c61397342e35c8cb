"""Makes golden captures: real frameworks, real instrumentations, a scripted model.

    python tests/lab/rig/run.py [SET ...] [--scenario NAME ...]

For each set of ``frameworks.toml``: an environment under ``tests/lab/rig/venvs``, one process per scenario, and the
OTLP requests of that process in ``tests/golden/captures/SET/SCENARIO.otlp.jsonl``. Those of ``emitters.toml`` go packed
and cut to ``tests/golden/emitters``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import lzma
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.rig.desks import DESKS
from tests.lab.rig.environment import Framework, emitters, frameworks
from tests.lab.rig.play import Run, Stage, as_lines
from tests.lab.rig.scenarios import SCENARIOS
from tests.lab.rig.trim import trim

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CAPTURES, PACKED = GOLDEN / "captures", GOLDEN / "emitters"
PIN = re.compile(r"(?:==|(?<=.)@)[\w.+-]+$")
TOOLS = sorted({tool.__name__ for desk in DESKS.values() for tool in desk.tools})


def name_of(requirement: str) -> str:
    """The distribution or package that a requirement names."""
    return PIN.sub("", requirement).partition("[")[0]


def main() -> int:
    """Run what was asked for; 1 when a run did not end as its scenario says."""
    sets = frameworks() | emitters()
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
        path = capture_of(framework, name)
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
        lines = lines_of(framework, run)
        path.write_bytes(lzma.compress(lines) if framework.packed else lines)
    record_versions(framework)
    return failed


def capture_of(framework: Framework, scenario: str) -> Path:
    """Where the capture of a scenario lies."""
    if framework.packed:
        return PACKED / framework.name / f"{scenario}.otlp.jsonl.xz"
    return CAPTURES / framework.name / f"{scenario}.otlp.jsonl"


def lines_of(framework: Framework, run: Run) -> bytes:
    """What a run sent; of a packed set, what is kept of it."""
    return as_lines(trim(run.requests, TOOLS, framework.keep) if framework.packed else run.requests)


def record_versions(framework: Framework) -> None:
    """Update the set's entry in VERSIONS.json with the day and what is installed: all, or what a packed set names."""
    path = (PACKED if framework.packed else CAPTURES) / "VERSIONS.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    versions = framework.versions()
    if framework.packed:
        named = {name_of(requirement) for requirement in framework.requirements}
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        versions = {"day": day} | {name: version for name, version in versions.items() if name in named}
    known[framework.name] = versions
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())

"""Creates golden captures from real frameworks and a scripted model.

    python tests/lab/rig/run.py [SET ...] [--scenario NAME ...]

Uses environments under ``tests/lab/rig/venvs`` and one process per scenario. Writes
``tests/golden/captures/SET/SCENARIO.otlp.jsonl``, ``tests/golden/emitters`` (trimmed) and ``tests/golden/hosted``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import lzma
import re
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lab.rig.desks import DESKS
from tests.lab.rig.environment import Framework, emitters, frameworks
from tests.lab.rig.play import Run, Stage, as_lines
from tests.lab.rig.scenarios import HOSTED, SCENARIOS, SCRIPTS, Scenario
from tests.lab.rig.trim import trim

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CAPTURES, PACKED, HOSTED_CAPTURES = GOLDEN / "captures", GOLDEN / "emitters", GOLDEN / "hosted"
PIN = re.compile(r"(?:==|(?<=.)@)[\w.+-]+$")
TOOLS = sorted({tool.__name__ for desk in DESKS.values() for tool in desk.tools})


def name_of(requirement: str) -> str:
    """Return the package name of a requirement."""
    return PIN.sub("", requirement).partition("[")[0]


def main() -> int:
    """Run the request; 1 for an unexpected end."""
    ordinary, hosted = frameworks() | emitters(), frameworks("hosted.toml")
    names = [*ordinary, *hosted]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of: {', '.join(names)}")
    parser.add_argument("--scenario", action="append", choices=SCRIPTS, help="may be repeated; default: all")
    arguments = parser.parse_args()
    failed = 0
    with Stage(SCRIPTS) as stage:
        for name in arguments.sets or names:
            scenarios, folder = (SCENARIOS, CAPTURES) if name in ordinary else (HOSTED, HOSTED_CAPTURES)
            wanted = {key: scenarios[key] for key in arguments.scenario or scenarios if key in scenarios}
            failed += run_set(stage, {**ordinary, **hosted}[name], wanted, folder)
    return 1 if failed else 0


def run_set(stage: Stage, framework: Framework, scenarios: Mapping[str, Scenario], folder: Path) -> int:
    """Write a set's captures and versions; return failures."""
    failed = 0
    framework.install()
    for name, scenario in scenarios.items():
        path = capture_of(framework, name, folder)
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
        lines = lines_of(framework, run)
        path.write_bytes(lzma.compress(lines) if framework.packed else lines)
    record_versions(framework, (PACKED if framework.packed else folder) / "VERSIONS.json")
    return failed


def capture_of(framework: Framework, scenario: str, folder: Path = CAPTURES) -> Path:
    if framework.packed:
        return PACKED / framework.name / f"{scenario}.otlp.jsonl.xz"
    return folder / framework.name / f"{scenario}.otlp.jsonl"


def lines_of(framework: Framework, run: Run) -> bytes:
    """Return the output, trimmed for packed sets."""
    return as_lines(trim(run.requests, TOOLS, framework.keep) if framework.packed else run.requests)


def record_versions(framework: Framework, path: Path) -> None:
    """Update the set's day and versions in VERSIONS.json."""
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

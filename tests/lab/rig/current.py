"""Checks newest framework releases against the golden captures.

    python tests/lab/rig/current.py [SET ...] [--again] [--details]

Installs each set's newest releases under ``tests/lab/rig/venvs/newest``, plays one scenario and compares the facts
read. Prints a line per set; exit code 1 for losses or failures. Skips sets compared today.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "collector"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.golden.conformance_capture import read
from tests.lab.rig.environment import VENVS, Framework, emitters, frameworks
from tests.lab.rig.play import Stage
from tests.lab.rig.reading import Facts, facts, gained, lost
from tests.lab.rig.run import PIN, capture_of, lines_of, name_of
from tests.lab.rig.scenarios import SCENARIOS

NEWEST = VENVS / "newest"
_PLUMBING = re.compile(r"opentelemetry-(sdk|exporter)|@opentelemetry/")


@dataclass(frozen=True)
class Outcome:
    """A set's outcome. ``problem``: why it could not be compared."""

    set: str
    versions: str
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    problem: str = ""

    @property
    def line(self) -> str:
        verdict = self.problem or (f"lost: {', '.join(self.lost)}" if self.lost else "same")
        also = f"; new: {', '.join(self.gained)}" if self.gained else ""
        return f"{self.set}: {self.versions}: {verdict}{also}"

    @property
    def well(self) -> bool:
        """Return whether no fact is lost."""
        return not self.lost and not self.problem


def main() -> int:
    """Compare the requested sets; 1 for losses."""
    sets = frameworks() | emitters()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of: {', '.join(sets)}")
    parser.add_argument("--again", action="store_true", help="also what was compared today")
    parser.add_argument("--details", action="store_true", help="the values that differ")
    arguments = parser.parse_args()
    well = True
    with Stage({name: scenario.dialogue for name, scenario in SCENARIOS.items()}) as stage:
        for name in arguments.sets or sets:
            outcome = None if arguments.again else earlier(name)
            if outcome is None:
                outcome = compared(stage, sets[name], arguments.details)
                keep(outcome)
            print(outcome.line, flush=True)
            well = well and outcome.well
    return 0 if well else 1


def newest(framework: Framework) -> Framework:
    """Return the set without pins, except the SDK's pins on Node."""
    kept = tuple(
        requirement if framework.on_node and _PLUMBING.match(requirement) else _newest(framework, requirement)
        for requirement in framework.requirements
    )
    return replace(framework, name=f"{NEWEST.name}/{framework.name}", requirements=kept)


def _newest(framework: Framework, requirement: str) -> str:
    name = PIN.sub("", requirement)
    major = framework.majors.get(name)
    if framework.on_node:
        return f"{name}@{major or 'latest'}"
    return f"{name}=={major}.*" if major else name


def compared(stage: Stage, framework: Framework, details: bool = False) -> Outcome:
    """Install, play and compare one set; keep errors inside its outcome."""
    unpinned, versions = newest(framework), "newest"
    scenario = next(name for name in SCENARIOS if name not in framework.skip)
    try:
        (unpinned.folder / "requirements.json").unlink(missing_ok=True)  # newest releases change, this text does not
        unpinned.folder.parent.mkdir(parents=True, exist_ok=True)
        unpinned.install()
        versions = changes(framework, unpinned.versions())
        run = stage.play(unpinned, scenario, SCENARIOS[scenario])
        (unpinned.folder / "run.log").write_text(run.log)
        capture = unpinned.folder / f"{scenario}.otlp.jsonl"
        capture.write_bytes(lines_of(framework, run))
        if run.failed:
            return Outcome(framework.name, versions, problem=f"run {run.summary}: {unpinned.folder / 'run.log'}")
        after = _facts(capture)
    except (OSError, subprocess.SubprocessError, AssertionError) as error:
        return Outcome(framework.name, versions, problem=f"not played: {error}")
    before = _facts(capture_of(framework, scenario))
    gone = lost(before, after, framework.own)
    if details:
        for fact in gone:
            print(f"  {fact}:", *(f"- {v}" for v in before[fact]), *(f"+ {v}" for v in after[fact]), sep="\n    ")
    return Outcome(framework.name, versions, tuple(gone), tuple(gained(before, after)))


def changes(framework: Framework, installed: Mapping[str, str]) -> str:
    """Return ``NAME OLD → NEW`` of the set's packages, without the SDK."""
    known = {normal(name): version for name, version in installed.items()}
    found = []
    for requirement in framework.requirements:
        pin = PIN.search(requirement)
        name = PIN.sub("", requirement)
        if pin and not _PLUMBING.match(name):
            old, new = pin.group().lstrip("=@"), known.get(normal(name_of(requirement)), "?")
            found.append(f"{name} {old}" + (f" → {new}" if new != old else " (still)"))
    return ", ".join(found)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def earlier(name: str) -> Outcome | None:
    """Return today's outcome of the set, if any."""
    path = NEWEST / f"{name}.json"
    if not path.exists():
        return None
    kept = json.loads(path.read_text())
    outcome = Outcome(name, kept["versions"], tuple(kept["lost"]), tuple(kept["gained"]), kept["problem"])
    return None if kept["day"] != today() or outcome.problem else outcome


def keep(outcome: Outcome) -> None:
    """Save the outcome."""
    NEWEST.mkdir(parents=True, exist_ok=True)
    known = {"day": today(), **vars(outcome)}
    (NEWEST / f"{outcome.set}.json").write_text(json.dumps(known))


def today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def _facts(capture: Path) -> Facts:
    return facts(recorded.trace for recorded in read(capture))


if __name__ == "__main__":
    sys.exit(main())

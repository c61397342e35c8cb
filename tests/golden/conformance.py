"""Checks the facts read from captures of real frameworks against their scripts.

    python tests/golden/conformance.py [SET …] [--scenario S] [--details] [--root DIR] [--write-docs]

Without ``--root`` reads the committed captures and ``../shared``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

if __package__ in (None, ""):  # run as a command
    _REPO = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_REPO), str(_REPO / "collector")]

from tests.golden.conformance_capture import read
from tests.golden.conformance_docs import mark, write
from tests.golden.conformance_facts import FACTS, Seen, Verdict
from tests.golden.conformance_truth import ROOTS, Capture, captures


@dataclass(frozen=True)
class Checked:
    """One capture and its facts."""

    capture: Capture
    verdicts: Mapping[str, Verdict]

    @property
    def missed(self) -> list[tuple[str, str]]:
        return [(fact, text) for fact, verdict in self.verdicts.items() for text in verdict.missed]


def check(capture: Capture) -> Checked:
    seen = Seen(capture, read(capture.path))
    return Checked(capture, {name: fact(seen) for name, fact in FACTS.items()})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--scenario", action="append", default=[])
    parser.add_argument("--details", action="store_true", help="what was missed, capture by capture")
    parser.add_argument("--root", type=Path, action="append", default=[], help="a folder of captures")
    parser.add_argument("--write-docs", action="store_true", help="write docs/reference/instrumentations.md")
    options = parser.parse_args(arguments)
    found = [
        capture
        for root in options.root or ROOTS.values()
        if root.is_dir()
        for capture in captures(root)
        if capture.set in (options.sets or [capture.set])
        and capture.scenario in (options.scenario or [capture.scenario])
    ]
    checked = [check(capture) for capture in found]
    print("\n".join(table(checked)))
    print(share(checked))
    if options.write_docs:
        write(checked)
    if options.details:
        for one in checked:
            for fact, text in one.missed:
                print(f"{one.capture.name}: {fact}: {text}")
    return 1 if any(one.missed for one in checked) else 0


def by_set(checked: Iterable[Checked]) -> dict[str, list[Checked]]:
    found: dict[str, list[Checked]] = {}
    for one in checked:
        found.setdefault(one.capture.set, []).append(one)
    return found


def table(checked: Sequence[Checked]) -> Iterator[str]:
    width = max((len(one.capture.set) for one in checked), default=3)
    yield f"{'set':{width}} " + " ".join(f"{fact[:7]:7}" for fact in FACTS)
    for name, of_set in by_set(checked).items():
        yield f"{name:{width}} " + " ".join(f"{mark([one.verdicts[fact] for one in of_set]):7}" for fact in FACTS)


def share(checked: Sequence[Checked]) -> str:
    """Return the share of correctly read facts."""
    verdicts = [verdict for one in checked for verdict in one.verdicts.values() if verdict.emitted or verdict.missed]
    right = sum(not verdict.missed for verdict in verdicts)
    return f"{right} of {len(verdicts)} facts right ({right / max(1, len(verdicts)):.1%}) in {len(checked)} captures"


if __name__ == "__main__":
    sys.exit(main())

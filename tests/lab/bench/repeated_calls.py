"""Measures detection of repeated tool calls for ``turn.tool_call_behavior_failure``, without a model.

    python tests/lab/bench/repeated_calls.py [--show]

Reads ``../shared/captures`` (*loop* recordings) and the set ``tau2-pairs``. Recordings without arguments count
separately. ``--show`` names the errors. Prints the table of docs/internals/metric-quality.md (``>
collector/pandaeval_collector/scoring/metrics/repeated_calls.md``, then ``cd tests && python -m
support.metrics_page``).
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._table import table  # noqa: E402
from lab.bench.labelled import share  # noqa: E402
from pandaeval_collector.judge.turns import turn_view  # noqa: E402
from pandaeval_collector.scoring.registry import registry  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402

SHARED = ROOT.parent / "shared"
CAPTURES, PAIRS = SHARED / "captures", SHARED / "data" / "tau2-pairs"
HEAD = ("set", "units", "recall", "precision", "found without a label")


@dataclass(slots=True)
class Found:
    """Detections in a set's units; ``known``: arguments exist."""

    right: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    clean: int = 0
    unknown: int = 0

    def add(self, name: str, labelled: bool, found: bool) -> None:
        if labelled:
            (self.right if found else self.missed).append(name)
        elif found:
            self.wrong.append(name)
        else:
            self.clean += 1

    def cells(self, name: str) -> list[str]:
        right, wrong = len(self.right), len(self.wrong)
        total = right + len(self.missed) + wrong + self.clean
        units = f"{total}, {right + len(self.missed)} with repeats"
        if self.unknown:
            units += f" ({self.unknown} more without arguments)"
        recall, precision = share(right, right + len(self.missed)), share(right, right + wrong)
        return [name, units, str(recall), str(precision), str(share(wrong, wrong + self.clean))]


def repeats(trace: Trace) -> bool:
    """Return whether a turn of the trace has the label."""
    by_code = registry()["turn.tool_call_behavior_failure"].by_code
    assert by_code is not None
    turns = () if trace.is_step else range(len(trace.turns))
    return any(by_code(turn_view(trace, index)) is not None for index in turns)


def _traces(path: Path) -> Iterator[Trace]:
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            run.add(request)
        yield from run.traces()


def captured() -> Found:
    """Return the recordings."""
    found = Found()
    for path in sorted(CAPTURES.glob("*/*.otlp.jsonl")):
        traces = [*_traces(path)]
        calls = [call for trace in traces for call in trace.tool_calls]
        if calls and not any(call.has_arguments and call.arguments for call in calls):
            found.unknown += 1
            continue
        scenario = path.name.removesuffix(".otlp.jsonl")
        found.add(f"{path.parent.name}/{scenario}", scenario == "loop", any(map(repeats, traces)))
    return found


def pairs() -> tuple[Found, Found]:
    """Return the sessions by runaway label, and by any repeated call."""
    most: dict[str, int] = {}
    loops: set[str] = set()
    for row in _labels():
        if row["name"] == "max_identical_calls":
            most[row["session_id"]] = int(row["value"])
        elif row["name"] == "loop" and row["value"]:
            loops.add(row["session_id"])
    flagged = {trace.session_id for trace in _traces(PAIRS / "traces.jsonl.xz") if repeats(trace)}
    ran_away, any_repeat = Found(), Found()
    for session, times in sorted(most.items()):
        if session in loops or times == 1:
            ran_away.add(session, session in loops, session in flagged)
        any_repeat.add(session, times > 1, session in flagged)
    return ran_away, any_repeat


def _labels() -> Iterator[dict[str, Any]]:
    with lzma.open(PAIRS / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--show", action="store_true", help="name what was missed, or found without a label")
    asked = parser.parse_args()
    if not CAPTURES.is_dir():
        sys.exit(f"{CAPTURES} is not there: the recordings are not part of this repository")
    ran_away, any_repeat = pairs()
    sets = {
        "captures: loop against all others": captured(),
        "tau2-pairs: runaway agents against runs without equal calls": ran_away,
        "tau2-pairs: the same call at least twice in a session": any_repeat,
    }
    rows = [found.cells(name) for name, found in sets.items()]
    print(table("Repeated tool calls, found by code", HEAD, rows))
    if asked.show:
        for name, found in sets.items():
            missed, wrong = (", ".join(each) or "none" for each in (found.missed, found.wrong))
            print(f"{name}: missed {missed}; without a label {wrong}")


if __name__ == "__main__":
    main()

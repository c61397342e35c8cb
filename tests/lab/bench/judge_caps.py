"""How many runs whose outcome is known would have their judged task_completion limited by facts.

    python tests/lab/bench/judge_caps.py [--only SET ...] [--show]

For each labelled set of ``../shared/data``: of the sessions labelled successful and failed, how many hold a trace that
:func:`completion_limit` limits, and how many traces those are. A limit on a successful one is a false alarm; on a
failed one it keeps a judge from being talked into a good score. ``--show`` prints each limited trace with its failed
calls.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._labelled_runs import _labels  # noqa: E402
from lab.bench._table import table  # noqa: E402
from pandaeval_collector.scoring.metrics.trace._limits import completion_limit  # noqa: E402
from pandaeval_lab.replay.files import BadLine, Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("tau-bench", "tau2-pairs", "agentrx-tau")
HEAD = ("set", "label", "sessions", "limited", "traces", "limited", "by")


def limited(name: str, show: bool) -> list[list[str]]:
    """The rows of one set: successful sessions, then failed ones."""
    good = _labels(DATA / name)
    sessions: dict[bool, set[str]] = {True: set(), False: set()}
    traces, by = Counter[bool](), {True: Counter[str](), False: Counter[str]()}
    capped: dict[bool, set[str]] = {True: set(), False: set()}
    with TraceFiles() as run:
        for request in Input(str(DATA / name / "traces.jsonl.xz")).requests():
            assert not isinstance(request, BadLine), request
            run.add(request)
        for trace in run.traces():
            unit = trace.session_id or trace.trace_id
            if unit not in good:
                continue
            label = good[unit]
            sessions[label].add(unit)
            traces[label] += 1
            limit = completion_limit(trace)
            if limit.best < 1.0:
                capped[label].add(unit)
                by[label][limit.by] += 1
                if show:
                    calls = [trace.tool_calls[n - 1] for n in limit.calls]
                    told = "; ".join(f"{c.name}: {str(c.error or c.result)[:150]!r}" for c in calls)
                    print(f"{name} {'good' if label else 'bad'} {unit} {limit.by} of {len(trace.tool_calls)}: {told}")
    return [
        [
            name,
            "successful" if label else "failed",
            *map(str, (len(sessions[label]), len(capped[label]), traces[label], by[label].total())),
            ", ".join(f"{reason} {count}" for reason, count in by[label].items()),
        ]
        for label in (True, False)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], choices=SETS, help="a set; may be repeated")
    parser.add_argument("--show", action="store_true", help="each limited trace with its failed calls")
    asked = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"{DATA} is not there: the labelled runs are not part of this repository")
    rows = [row for name in asked.only or SETS for row in limited(name, asked.show)]
    print(table("Runs that facts would limit", HEAD, rows))


if __name__ == "__main__":
    main()

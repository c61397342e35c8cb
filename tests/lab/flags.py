"""Values that ``grounding`` flags in labelled runs, drawn with a seed, each with what the agent had, to be read.

    python tests/lab/flags.py SET [--half even|odd|all] [--draw 20] [--seed 1] [--suspects] [--limit SESSIONS]

Prints how many good sessions fail first. ``--half``: of the sessions, by the hash of their ids; rules are made on the
even half and measured on the odd one. ``--suspects`` draws from what is only listed.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import sys  # isort: skip

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from lab._sessions import HALVES, SETS, sessions, with_before  # noqa: E402
from pandaeval_collector.base.score import Score, Unscored  # noqa: E402
from pandaeval_collector.scoring.metric import Texts, TraceContext  # noqa: E402
from pandaeval_collector.scoring.metrics.trace.grounding import METRIC  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402

_ROOM = 700
_DIGITS = re.compile(r"\d[\d.,:/-]*")


def context(earlier: Any) -> TraceContext:
    """What the metric is given besides the trace."""
    return TraceContext(Texts({}, (), "none", None), METRIC.threshold or 0.0, before=earlier)


def fails(found: Any) -> bool:
    """Returns whether a finding fails the run."""
    return isinstance(found, Score) and (found.failed or found.value < (METRIC.threshold or 0.0))


def shown(session: str, good: bool | None, trace: Trace, entry: dict[str, Any], earlier: Any) -> str:
    """A flag as people read it: the value, its text, and what the trace and its session held."""
    lines = [f"=== {entry['value']!r} ({entry['kind']}) session {session} good={good} trace {trace.trace_id}"]
    lines += [
        f"    text: {entry['text']}",
        *(f"    {key}: {entry[key]}" for key in ("argument", "but") if key in entry),
    ]
    lines += [f"  user: {turn.user!s:.{_ROOM}}" for turn in trace.turns]
    lines += [f"  call {call.name}({call.arguments!s:.300}) -> {call.result!s:.{_ROOM}}" for call in trace.tool_calls]
    lines += [f"  answer: {trace.output!s:.1500}"]
    held = [str(value) for _, value in earlier.found] if earlier is not None else []
    held += [str(message) for span in trace.spans for message in span.input or ()]
    held += [span.system or "" for span in trace.spans if isinstance(span.system, str)]
    for digits in dict.fromkeys(_DIGITS.findall(entry["value"])):
        places = [(text, at) for text in dict.fromkeys(held) if (at := text.find(digits)) >= 0]
        lines += [f"  {digits} stands in: …{text[max(0, at - 60) : at + 60]!r}…" for text, at in places[:3]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--half", choices=HALVES, default="even")
    parser.add_argument("--draw", type=int, default=20, help="flags that are shown")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suspects", action="store_true", help="draw from what is only listed")
    parser.add_argument("--limit", type=int, help="sessions that are read at most")
    asked = parser.parse_args()
    flags: list[str] = []
    count: Counter[str] = Counter()
    failing: Counter[bool | None] = Counter()
    of: Counter[bool | None] = Counter()
    took = 0.0
    for session, good, traces in sessions(asked.set, asked.half, asked.limit):
        failed = False
        for trace, earlier in with_before(traces):
            began = time.thread_time()
            found = METRIC.evaluate(trace, context(earlier))
            took += time.thread_time() - began
            count["traces"] += 1
            count["scored"] += isinstance(found, Score)
            count["unscored"] += isinstance(found, Unscored)
            if fails(found):
                failed = True
                count["failed"] += 1
            if isinstance(found, Score):
                entries = found.metadata.get("suspect" if asked.suspects else "not_grounded", [])
                if asked.suspects or fails(found):
                    flags += [shown(session, good, trace, entry, earlier) for entry in entries]
        of[good] += 1
        failing[good] += failed
    print(dict(count), f"{1000 * took / max(1, count['traces']):.2f} ms a trace")
    print({f"good={good}": f"{failing[good]} of {of[good]} sessions fail" for good in of}, f"{len(flags)} flags")
    random.Random(asked.seed).shuffle(flags)
    print("\n".join(flags[: asked.draw]))


if __name__ == "__main__":
    main()

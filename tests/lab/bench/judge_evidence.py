"""How much of what was recorded before a call a judge is shown.

    python tests/lab/bench/judge_evidence.py [--only SET ...] [--budget TOKENS] [--limit TRACES]

For every value in the arguments of every call that stands anywhere in what was recorded before it, in its trace or in
earlier ones of its session (the user's words, instructions, the conversation, earlier results; in ``../shared/data``
and ``../shared/captures``): is it in the pack, the arguments of calls apart? And is it in one without context, and how
many tokens do both have?
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from rich.console import Console  # noqa: E402

from lab.bench._labelled_runs import default_evaluator  # noqa: E402
from lab.bench._table import table  # noqa: E402
from pandaeval_collector.cli._output import progress  # noqa: E402
from pandaeval_collector.judge.before import lines_of, tells_of_before  # noqa: E402
from pandaeval_collector.judge.neutral import neutral  # noqa: E402
from pandaeval_collector.judge.pack import pack  # noqa: E402
from pandaeval_collector.pipeline.line.decision import Conclusion  # noqa: E402
from pandaeval_collector.runs.replay import replay  # noqa: E402
from pandaeval_lab.replay.files import BadLine, Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Text, ToolCall, ToolRequest, ToolResponse, Trace  # noqa: E402

SHARED = ROOT.parent / "shared"
SETS = ("tau-bench", "tau2-pairs", "agentrx-tau", "captures")
SECRET = b"s" * 32
_SHORTEST = 3
"""Characters of a value that is looked for: shorter ones stand everywhere by chance."""


@dataclass
class Found:
    """``recorded``: values that stand in what was recorded before their call; ``shown``: those of them in the pack;
    ``shown_without``: in one without context."""

    traces: int = 0
    recorded: int = 0
    shown: int = 0
    shown_without: int = 0
    tokens: list[int] = field(default_factory=list)
    without: list[int] = field(default_factory=list)


def values(arguments: Any) -> Iterator[str]:
    """The leaves of arguments, as they are looked for."""
    if isinstance(arguments, dict):
        for each in arguments.values():
            yield from values(each)
    elif isinstance(arguments, list):
        for each in arguments:
            yield from values(each)
    elif isinstance(arguments, str | int | float) and not isinstance(arguments, bool):
        text = neutral(str(arguments)).strip().casefold()
        if len(text) >= _SHORTEST:
            yield text


def recorded_before(trace: Trace, call: ToolCall) -> str:
    """All that was recorded before a call, but for what the model asked of tools."""
    parts = [turn.user or "" for turn in trace.turns]
    parts += [str(other.result) for other in trace.tool_calls if other.end_ns <= call.start_ns and other.has_result]
    for span in trace.spans:
        if span.start_ns <= call.start_ns:
            parts.append(span.system or "")
            for message in span.input or ():
                for part in message.parts:
                    match part:
                        case Text(text=text):
                            parts.append(text)
                        case ToolResponse(result=result):
                            parts.append(str(result))
                        case ToolRequest():
                            pass
    return neutral("\n".join(parts)).casefold()


def look(trace: Trace, said: str, earlier: Sequence[str], budget: int, found: Found) -> None:
    """Adds what one trace shows. ``said``: all that was recorded in earlier traces of its session; ``earlier``: the
    same as a judge is told it."""
    if not trace.tool_calls:
        return
    bare = replace(trace, spans=tuple(replace(span, input=None, system=None) for span in trace.spans))
    packs = pack(trace, SECRET, budget, earlier), pack(bare, SECRET, budget)
    shown, shown_bare = (_evidence(each.text) for each in packs)
    found.traces += 1
    found.tokens.append(packs[0].tokens)
    found.without.append(packs[1].tokens)
    for call in trace.tool_calls:
        known = recorded_before(trace, call) + said
        for value in values(call.arguments):
            if value in known:
                found.recorded += 1
                found.shown += value in shown
                found.shown_without += value in shown_bare


def _evidence(text: str) -> str:
    """A pack without the arguments of calls: that a value stands there does not tell where it came from."""
    lines = (line for line in text.splitlines() if not line.startswith(("arguments: ", "agent called ")))
    return "\n".join(lines).casefold()


def files(name: str) -> list[Path]:
    """The recordings of a set."""
    if name == "captures":
        return sorted((SHARED / "captures").rglob("*.otlp.jsonl"))
    return [SHARED / "data" / name / "traces.jsonl.xz"]


def measured(name: str, budget: int, limit: int | None) -> Found:
    """One set."""
    found = Found()
    with progress(Console(stderr=True), name) as told:
        paths = files(name)
        for at, path in enumerate(paths):
            for session in sessions(path):
                said: list[str] = []
                earlier: list[str] = []
                for trace in session:
                    if limit is None or found.traces < limit:
                        before = () if tells_of_before(trace) else earlier
                        look(trace, "\n".join(said), before, budget, found)
                    lines = lines_of(trace)
                    earlier.extend(lines)
                    said.extend(neutral(line).casefold() for line in lines if not line.startswith("agent called "))
            told(at + 1, len(paths))
    return found


def sessions(path: Path) -> list[list[Trace]]:
    """The traces of a recording by session, in order; those without one by themselves."""
    held: dict[str, list[Trace]] = {}
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            if not isinstance(request, BadLine):
                run.add(request)

        def keep(decision: Conclusion) -> None:
            for trace in decision.traces:
                held.setdefault(trace.session_id or trace.trace_id, []).append(trace)

        for _ in replay(run, default_evaluator(), on_decided=keep):
            pass
    return [sorted(traces, key=lambda trace: (trace.start_ns, trace.trace_id)) for traces in held.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], choices=SETS, help="a set; may be repeated")
    parser.add_argument("--budget", type=int, default=12_000, help="tokens of a pack")
    parser.add_argument("--limit", type=int, help="at most so many traces of a set")
    asked = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"{SHARED} is not there: the recordings are not part of this repository")
    rows = []
    for name in asked.only or SETS:
        found = measured(name, asked.budget, asked.limit)
        shares = [f"{each / max(1, found.recorded):.1%}" for each in (found.shown, found.shown_without)]
        sizes = [round(statistics.mean(each or [0])) for each in (found.tokens, found.without)]
        rows.append([name, found.traces, found.recorded, *shares, *sizes])
    head = (
        "set",
        "traces with calls",
        "values recorded before",
        "shown",
        "without context",
        "tokens a pack",
        "without context",
    )
    print(table("What a judge is shown of the values in arguments", head, rows))


if __name__ == "__main__":
    main()

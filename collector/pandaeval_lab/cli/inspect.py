"""``pandaeval inspect``: shows how traces were read."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import orjson
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from pandaeval_collector.analysis.rules._failures import failure_of
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.base.untrusted.foreign import plain_error
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._options import argument, option
from pandaeval_collector.cli._output import console, message, safe
from pandaeval_collector.cli._terminal import write_json
from pandaeval_collector.show.report.detail import describe, in_order
from pandaeval_lab.cli._inputs import Inputs, print_problems
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Captured, OtherResult, Span, Trace


def inspect(
    files: Annotated[list[str], argument("Trace files, as for evaluate; - is standard input.")],
    format_: Annotated[
        Literal["tree", "json"], option("Output format: tree, or one JSON trace per line.", "--format")
    ] = "tree",
) -> None:
    """Show how PandaEval reads traces.

    If a score surprises you, first run this command."""
    out, inputs, telemetry = console(), Inputs(files), Telemetry()
    shown, others = 0, dict[str, list[str]]()
    with TraceFiles() as run:
        run.add_all(inputs)
        for trace in run.traces():
            shown += 1
            if trace.session_id and trace.evaluations:
                others.setdefault(trace.session_id, []).extend(map(_other, trace.evaluations))
            if format_ == "json":
                whole = describe(trace)
                for described, call in zip(whole["tool_calls"], trace.tool_calls, strict=True):
                    described["error"] = failure_of(call)
                write_json(orjson.dumps(whole, default=str))
            else:
                _print(out, trace)
        if format_ == "tree":
            for session, evaluations in others.items():
                out.print(Text(f"session {safe(session)}  other evaluators: {'; '.join(evaluations)}"))
        print_problems(run.read, telemetry)
    sys.stdout.flush()
    if not shown:
        message("No spans in this input.")
    inputs.check()


def _print(out: Console, trace: Trace) -> None:
    head = Text.assemble(
        (trace.trace_id, "bold"),
        f"  agent {safe(trace.agent or '-')}  session {safe(trace.session_id or '-')}  ",
        (trace.status, "red" if trace.error is not None else "green"),
        f"  {trace.llm_calls} model calls  {trace.usage.input}+{trace.usage.output} tokens  "
        f"[{', '.join(trace.dialects)}]",
    )
    tree = Tree(head)
    stack = [(-1, tree)]
    for depth, span, looped in in_order(trace):
        while stack[-1][0] >= depth:
            stack.pop()
        remark = safe("in a parent loop" if looped else _remark(span))
        label = Text.assemble(
            (span.kind.value, "cyan"), f" {safe(span.name)}", (f"  {remark}" if remark else "", "dim")
        )
        stack.append((depth, stack[-1][1].add(label)))
    out.print(tree)
    for side, value in (("input", trace.input), ("output", trace.output)):
        shown = "not captured" if value is None else _short(value, 300) or "(empty)"
        out.print(Text.assemble((f"  {side:7}", "bold"), shown))
    for index, call in enumerate(trace.tool_calls, 1):
        result = (call.error and plain_error(call.error)) or (call.result if call.has_result else "no result captured")
        arguments = call.arguments if call.has_arguments else "arguments not captured"
        out.print(Text.assemble((f"  call {index:<2}", "bold"), _short(f"{call.name}({arguments}) → {result}", 200)))
    for other in trace.evaluations:
        out.print(Text(f"  other  {_other(other)}", style="dim"))
    for note in trace.notes:
        out.print(Text(f"  note   {safe(note)}", style="yellow"))
    out.print()


def _other(other: OtherResult) -> str:
    parts = [each for each in (other.name, other.score, other.label) if each not in (None, "")]
    return f"{safe(' '.join(map(str, parts)))} (by {safe(other.source)})"


def _short(text: str, limit: int) -> str:
    return excerpt(text, limit) or ""


def _remark(span: Span) -> str:
    parts = []
    if span.tool_name:
        parts.append(f"{_captured(span.arguments)} → {_captured(span.result)}")
    if span.usage is not None:
        parts.append(f"{span.usage.input}+{span.usage.output} tokens")
    if span.error is not None:
        parts.append(f"ERROR {plain_error(span.error)}"[:100])
    return ", ".join(parts)


def _captured(value: Captured | None) -> str:
    text = "not captured" if value is None else str(value.value)
    return text if len(text) <= 60 else f"{text[:57]}…"

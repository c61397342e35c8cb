"""Collects each tool call of a trace once, from tool spans, answers and later inputs."""

from __future__ import annotations

from pandaeval_otel.model import Kind, Span, ToolCall
from pandaeval_otel.normal.asked_calls import asked_calls, turn_groups
from pandaeval_otel.normal.call import ORDER, Call
from pandaeval_otel.normal.call_matching import match_calls
from pandaeval_otel.normal.call_results import give_results
from pandaeval_otel.normal.speech import asks_for_tool
from pandaeval_otel.normal.tree import RUNS, Tree

# Module constants: an enum lookup costs several times as much, and every span needs one.
_LLM, _TOOL = Kind.LLM, Kind.TOOL


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """Return the calls of a trace, by time of the request."""
    run = [
        call for index, span in enumerate(tree.spans) if span.kind is _TOOL for call in calls_on_span(span, tree, index)
    ]
    speakers = [span for span in tree.spans if span.kind is _LLM and (span.input or span.output)]
    groups = turn_groups(speakers, tree)
    asked = asked_calls(speakers, tree, groups)
    if not speakers or not (run or asked):
        speakers = [span for span in tree.roots if span.kind in RUNS]
        asked = asked_calls(speakers, tree, ())
    carried = _carried(tree)
    if carried:
        asked = [call for call in asked if call.id not in carried]
    match_calls(run, asked, {span.tool_name for span in tree.spans if span.kind is _TOOL and is_served(span)})
    calls = sorted([*run, *[call for call in asked if not call.matched]], key=ORDER)
    give_results(speakers, calls, {group[0].span_id for group in groups[1:]})
    return tuple([call.finished() for call in calls])


def _caller(span: Span, tree: Tree) -> str:
    if span.agent_name and tree.children(span):
        above = tree.parent(span)
        if above is not None and any(inner.kind is _LLM for inner in tree.below(span)):
            return tree.agent(above)
    return tree.agent(span)


def is_served(span: Span) -> bool:
    return "mcp" in span.dialects


def _carried(tree: Tree) -> set[str]:
    return {
        request.id
        for root in tree.roots
        if root.kind in RUNS
        for message in root.output or ()
        for request in message.tool_requests
        if request.id and not asks_for_tool(request)
    }


def calls_on_span(span: Span, tree: Tree, index: int) -> list[Call]:
    """Return the call of a tool span, or the calls of a span for a batch, which joins their names and IDs by commas."""
    call = _call_on_span(span, tree, index)
    if "," not in call.name or "," not in call.id:
        return [call]
    names, ids = ([each.strip() for each in text.split(",")] for text in (call.name, call.id))
    if len(names) != len(ids):
        return [call]
    return [
        Call(name, call_id, (span.start_ns, index), span.span_id, call.agent, span.start_ns, span.end_ns)
        for name, call_id in zip(names, ids, strict=True)
    ]


def _call_on_span(span: Span, tree: Tree, index: int) -> Call:
    return Call(
        span.tool_name or span.name,
        span.tool_call_id,
        (span.start_ns, index),
        span.span_id,
        _caller(span, tree),
        span.start_ns,
        span.end_ns,
        span.arguments.value if span.arguments else None,
        span.arguments is not None,
        span.result,
        span.result is not None,
        span.error or _error_inside(span, tree),
    )


def _error_inside(span: Span, tree: Tree) -> str | None:
    """Return the error of the last run that a call contains, if this run has no answer."""
    runs = [inner for inner in tree.below(span) if inner.kind in RUNS and tree.above(inner) is span]
    last = max(runs, key=lambda run: run.end_ns, default=span)
    return None if last.output else last.error

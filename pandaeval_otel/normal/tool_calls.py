"""Collects each tool call of a trace once, from tool spans, answers and later inputs."""

from __future__ import annotations

from pandaeval_otel.model import Kind, Span, ToolCall
from pandaeval_otel.normal.call import ORDER, Call
from pandaeval_otel.normal.call_matching import match_calls
from pandaeval_otel.normal.call_results import attach_results
from pandaeval_otel.normal.requested_calls import requested_calls, turn_groups
from pandaeval_otel.normal.speech import is_real_tool_call
from pandaeval_otel.normal.tree import RUNS, Tree

# Module constants: an enum lookup costs several times as much, and every span needs one.
_LLM, _TOOL = Kind.LLM, Kind.TOOL


def tool_calls(tree: Tree) -> tuple[ToolCall, ...]:
    """Return the calls of a trace, by time of the request."""
    run = _run_calls(tree)
    speakers = [span for span in tree.spans if span.kind is _LLM and (span.input or span.output)]
    groups = turn_groups(speakers, tree)
    asked = requested_calls(speakers, tree, groups)
    if not speakers or not (run or asked):
        speakers = [span for span in tree.roots if span.kind in RUNS]
        asked = requested_calls(speakers, tree, ())
    carried = _carried(tree)
    if carried:
        asked = [call for call in asked if call.id not in carried]
    match_calls(run, asked, {span.tool_name for span in tree.spans if span.kind is _TOOL and is_served(span)})
    calls = sorted([*run, *[call for call in asked if not call.matched]], key=ORDER)
    attach_results(speakers, calls, {group[0].span_id for group in groups[1:]})
    return tuple([call.finished() for call in calls])


def _run_calls(tree: Tree) -> list[Call]:
    """Return the calls of tool spans. The time is linear, also if thousands of calls contain each other."""
    asking, ends = tree.around(span for span in tree.spans if span.kind is _LLM), _last_runs(tree)
    found: list[Call] = []
    for index, span in enumerate(tree.spans):
        if span.kind is _TOOL:
            error = span.error or _error_inside(ends.get(span.span_id))
            found += _calls_on_span(span, _caller(span, tree, asking), error, index)
    return found


def _last_runs(tree: Tree) -> dict[str, Span]:
    """Return the run that ended last in each tool call, by the ID of the call's span."""
    last: dict[str, Span] = {}
    for run in tree.spans:
        call = tree.above(run) if run.kind in RUNS else None
        if call is None or call.kind is not _TOOL:
            continue
        known = last.get(call.span_id)
        if known is None or run.end_ns > known.end_ns:
            last[call.span_id] = run
    return last


def _error_inside(run: Span | None) -> str | None:
    """Return the error of the last run inside a call, if this run has no answer."""
    if run is None or run.output:
        return None
    return run.error


def _caller(span: Span, tree: Tree, asking: set[str]) -> str:
    above = tree.parent(span)
    if span.agent_name and above is not None and span.span_id in asking:
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
        if request.id and not is_real_tool_call(request)
    }


def _calls_on_span(span: Span, caller: str, error: str | None, index: int) -> list[Call]:
    """Return the call of a tool span, or the calls of a span for a batch, which joins their names and IDs by commas."""
    name = span.tool_name or span.name
    order = (span.start_ns, index)
    names, ids = ([each.strip() for each in text.split(",")] for text in (name, span.tool_call_id))
    if 1 < len(names) == len(ids):
        return [
            Call(each, call_id, order, span.span_id, caller, span.start_ns, span.end_ns)
            for each, call_id in zip(names, ids, strict=True)
        ]
    return [
        Call(
            name,
            span.tool_call_id,
            order,
            span.span_id,
            caller,
            span.start_ns,
            span.end_ns,
            span.arguments.value if span.arguments else None,
            span.arguments is not None,
            span.result,
            span.result is not None,
            error,
        )
    ]

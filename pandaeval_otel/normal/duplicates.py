"""Several spans for one call: two instrumentations on one application, a framework above a provider's client, MCP
client and server. The call is kept once, with what all its spans know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pandaeval_otel.model import Kind, Span, Usage
from pandaeval_otel.normal.tree import Tree


def merge_duplicates(tree: Tree) -> tuple[Tree, int]:
    """A tree in which each model call, tool call and agent run stands once, and how many spans were folded.

    The outermost span of a call stays in the tree and takes from the others what it does not state itself;
    the folded ones turn into spans of kind ``STEP`` without content, so that nothing below them is lost.
    """
    groups: dict[str, list[Span]] = {}
    keepers: dict[str, str] = {}
    by_response: dict[str, str] = {}
    for span in tree.spans:
        keeper = _keeper(span, tree, keepers, by_response)
        if keeper is not None:
            keepers[span.span_id] = keeper
            groups.setdefault(keeper, []).append(span)
    folded = sum(len(group) - 1 for group in groups.values())
    if not folded:
        return tree, 0
    changed: dict[str, Span] = {}
    for keeper, group in groups.items():
        if len(group) > 1:
            changed[keeper] = _merged(group)
            changed.update((span.span_id, _emptied(span)) for span in group if span.span_id != keeper)
    return Tree([changed.get(span.span_id, span) for span in tree.spans]), folded


def _keeper(span: Span, tree: Tree, keepers: dict[str, str], by_response: dict[str, str]) -> str | None:
    """The id of the span that stands for the call which ``span`` is part of; its own id if it is the first."""
    if span.kind is Kind.LLM:
        same = by_response.get(span.response_id) if span.response_id else None
        if same is None:
            same = _above(span, tree, keepers, _same_model_call)
        same = same or span.span_id
        if span.response_id:
            by_response.setdefault(span.response_id, same)
        return same
    if span.kind is Kind.TOOL:
        return _above(span, tree, keepers, _same_tool_call) or span.span_id
    if span.kind is Kind.AGENT:
        return _above(span, tree, keepers, _same_agent_run) or span.span_id
    return None


def _above(span: Span, tree: Tree, keepers: dict[str, str], same: Callable[[Span, Span], bool]) -> str | None:
    for above in tree.ancestors(span):
        if above.kind is span.kind and same(above, span):
            return keepers.get(above.span_id, above.span_id)
        if above.kind in (Kind.AGENT, Kind.TOOL, Kind.LLM, Kind.WORKFLOW):
            return None
    return None


def _same_model_call(outer: Span, inner: Span) -> bool:
    """A model call directly inside a model call is the same call, unless both name different responses."""
    return not (outer.response_id and inner.response_id and outer.response_id != inner.response_id)


def _same_tool_call(outer: Span, inner: Span) -> bool:
    if outer.tool_call_id and inner.tool_call_id and outer.tool_call_id != inner.tool_call_id:
        return False
    return outer.tool_name == inner.tool_name


def _same_agent_run(outer: Span, inner: Span) -> bool:
    return bool(outer.agent_name) and outer.agent_name == inner.agent_name


def _merged(group: list[Span]) -> Span:
    """The first span, completed by the others; tokens are those of the span that states most, never a sum."""
    keeper, *others = group
    usages = [span.usage for span in group if span.usage is not None]
    fill: dict[str, object] = {}
    for name in _FILLED:
        if getattr(keeper, name) in _NOTHING:
            stated = (getattr(other, name) for other in others)
            fill[name] = next((value for value in stated if value not in _NOTHING), getattr(keeper, name))
    fill["usage"] = max(usages, key=_tokens) if usages else None
    fill["dialects"] = tuple(dict.fromkeys(name for span in group for name in span.dialects))
    fill["session_ids"] = tuple(sorted({pair for span in group for pair in span.session_ids}, key=lambda pair: pair[0]))
    fill["error"] = next((span.error for span in group if span.error is not None), None)
    return replace(keeper, **fill)  # type: ignore[arg-type]


_FILLED = (
    *("input", "output", "system", "tool_name", "tool_call_id", "arguments", "result", "tools"),
    *("request_model", "response_model", "response_id", "agent_name", "user_id", "documents"),
)
_NOTHING = (None, "", ())


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output


def _emptied(span: Span) -> Span:
    return replace(
        span, kind=Kind.STEP, input=None, output=None, usage=None, arguments=None, result=None, tool_name="", tools=None
    )

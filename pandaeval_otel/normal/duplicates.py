"""Merges spans that record the same call, from two instrumentations, an MCP client and server, or a replayed
workflow.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Container, Iterable, Sequence
from hashlib import blake2b
from itertools import islice

from pandaeval_otel.model import Kind, Message, Reasoning, Span, ToolRequest
from pandaeval_otel.model.message import all_parts
from pandaeval_otel.normal.tool_calls import is_served
from pandaeval_otel.normal.tool_names import same_mcp_tool, same_tool
from pandaeval_otel.normal.tree import Tree

Messages = tuple[Message, ...]
_Place = tuple[str, str, int, int]
"""A span's name, parent and times."""
# Module constants: an enum lookup costs several times as much, and every span needs one.
_AGENT, _LLM, _TOOL = Kind.AGENT, Kind.LLM, Kind.TOOL
_CALLS = frozenset({Kind.LLM, Kind.TOOL, Kind.AGENT})
_FILLED = (
    *("input", "output", "system", "tool_name", "tool_call_id", "arguments", "result", "tools"),
    *("request_model", "response_model", "response_id", "previous_response_id"),
    *("agent_name", "user_id", "documents", "content_refs"),
)
_NOTHING = (None, "", ())
_NEAR = 64
"""Maximum tool spans searched for the client of an MCP call, or for a replayed call with another name."""


def merge_duplicates(tree: Tree) -> tuple[Tree, int]:
    """Return a tree with each model call, tool call and agent run once, and the number of merged spans.

    The outermost span keeps the call and takes missing fields. Others become empty ``STEP`` spans. A model call around
    several calls becomes a ``WORKFLOW``.
    """
    any_twice, repeated = _twice(tree)
    if not any_twice:
        return tree, 0
    calls = sorted([span for span in tree.spans if span.kind in _CALLS], key=tree.depth)  # outer spans first
    keepers = _Keepers(tree, _wrappers(calls, tree), repeated - _asked_again(tree, repeated) if repeated else repeated)
    groups: dict[str, list[Span]] = {}
    for span in calls:
        if span.span_id not in keepers.wrappers:
            groups.setdefault(keepers.add(span), []).append(span)
    changed = {key: _wrapper(tree.by_id[key], keepers.by_response) for key in keepers.wrappers}
    for keeper, group in groups.items():
        if len(group) > 1:
            changed[keeper] = _merged(group, tree)
            changed.update((span.span_id, _emptied(span)) for span in group[1:])
    if changed:
        tree = Tree(changed.get(span.span_id, span) for span in tree.spans)
    return tree, len(calls) - len(keepers.wrappers) - len(groups)


class _Keepers:
    def __init__(self, tree: Tree, wrappers: set[str], repeated: set[str]) -> None:
        self.wrappers = wrappers
        self.by_response: dict[str, str] = {}
        self._tree, self._repeated = tree, repeated
        self._of: dict[str, str] = {}
        self._by_call: dict[tuple[str, bytes], dict[str, Span]] = {}
        """The first span of each tool name, by call id and digest of arguments and result."""
        self._tools: list[Span] = []
        self._models: list[Span] = []
        self._by_place: dict[_Place, Span] = {}

    def add(self, span: Span) -> str:
        keeper = self._twin(span) or self._with_its_id(span) or self._around(span)
        self._of[span.span_id] = keeper
        if span.kind is _LLM and span.response_id:
            self.by_response.setdefault(span.response_id, keeper)
        return keeper

    def _twin(self, span: Span) -> str | None:
        """Return the keeper of a span that was sent before under another id."""
        first = self._by_place.setdefault(_place(span), span)
        lasts = first is not span and span.end_ns > span.start_ns
        is_same = lasts and all(getattr(first, name) == getattr(span, name) for name in _FILLED)
        return self._of.get(first.span_id) if is_same and first.usage == span.usage else None

    def _with_its_id(self, span: Span) -> str | None:
        if span.kind is _LLM:
            keeper = self.by_response.get(span.response_id)
            if keeper is None:
                beside = next((other for other in self._models[-_NEAR:] if _same_model_call(span, other)), None)
                self._models.append(span)
                return self._of[beside.span_id] if beside is not None else None
            if _says_otherwise(self._tree.by_id[keeper], span):
                return None
            return keeper
        if span.kind is not _TOOL:
            return None
        around = (
            next((other for other in self._tools[-_NEAR:] if _runs_beside(span, other)), None)
            if is_served(span)
            else None
        )
        if around is not None:
            return self._of[around.span_id]
        self._tools.append(span)
        if span.tool_call_id not in self._repeated or span.arguments is None or span.result is None:
            return None
        made = self._by_call.setdefault((span.tool_call_id, _digest(span)), {})
        same = next((other for other in islice(made.values(), _NEAR) if _replays(other, span)), None)
        made.setdefault(span.tool_name, span)
        return self._of[same.span_id] if same is not None else None

    def _around(self, span: Span) -> str:
        above = self._tree.above(span)
        if above is None or above.kind is not span.kind or above.span_id in self.wrappers:
            return span.span_id
        if _same_call(above, span):
            return self._of[above.span_id]
        return span.span_id


def _twice(tree: Tree) -> tuple[bool, set[str]]:
    seen: set[str] = set()
    repeated: set[str] = set()
    any_twice, tools, scopes, places = False, set[bool](), set[str](), list[_Place]()
    for span in tree.spans:
        kind = span.kind
        if kind not in _CALLS:
            continue
        above = tree.above(span)
        if (above is not None and above.kind is kind) or (span.response_id and span.response_id in seen):
            any_twice = True
        places.append(_place(span))
        if kind is _LLM:
            seen.add(span.response_id)
            scopes.add(span.scope)
        elif kind is _TOOL:
            tools.add(is_served(span))
            if call := span.tool_call_id:
                if call in seen:
                    repeated.add(call)
                seen.add(call)
    return any((any_twice, repeated, len(tools) > 1, len(scopes) > 1, len({*places}) < len(places))), repeated


def _place(span: Span) -> _Place:
    return span.name, span.parent_id, span.start_ns, span.end_ns


def _asked_again(tree: Tree, ids: Collection[str]) -> set[str]:
    asked: dict[str, Span] = {}
    again: set[str] = set()
    for span in tree.spans:
        if span.kind is not _LLM:
            continue
        for message in span.output or ():
            for request in message.tool_requests:
                if request.id in ids and asked.setdefault(request.id, span).input != span.input:
                    again.add(request.id)
    return again


def _replays(one: Span, other: Span) -> bool:
    is_equal = (one.arguments, one.result) == (other.arguments, other.result)
    return is_equal and same_tool(one.tool_name, other.tool_name)


def _digest(span: Span) -> bytes:
    assert span.arguments is not None
    assert span.result is not None
    try:
        text = json.dumps((span.arguments.value, span.result.value), sort_keys=True, default=str).replace(".0", "")
    except (TypeError, ValueError, RecursionError):  # keys of several types, or endlessly nested lists
        text = ""
    return blake2b(text.encode(), digest_size=16).digest()


def _wrappers(calls: Sequence[Span], tree: Tree) -> set[str]:
    inner: dict[str, set[str]] = {}
    for span in calls:
        above = tree.above(span)
        if span.kind is _LLM and span.error is None and above is not None and above.kind is _LLM:
            inner.setdefault(above.span_id, set()).add(span.response_id or span.span_id)
    return {key for key, distinct in inner.items() if len(distinct) > 1}


def _wrapper(span: Span, calls: Container[str]) -> Span:
    """Turn a span around several model calls into a workflow.

    If it shares a response id, its content is a copy and is dropped.
    """
    if not span.response_id or span.response_id not in calls:
        return span.but(kind=Kind.WORKFLOW)
    return _emptied(span).but(kind=Kind.WORKFLOW, response_id="", previous_response_id="", system=None)


def _says_otherwise(one: Span, other: Span) -> bool:
    if one.output is None or other.output is None or one.output == other.output:
        return False
    return one.end_ns < other.start_ns or other.end_ns < one.start_ns


def _same_call(outer: Span, inner: Span) -> bool:
    if inner.kind is _LLM:
        return not (outer.response_id and inner.response_id and outer.response_id != inner.response_id)
    if inner.kind is _AGENT:
        return bool(outer.agent_name) and outer.agent_name == inner.agent_name
    if outer.tool_call_id and inner.tool_call_id and outer.tool_call_id != inner.tool_call_id:
        return False
    if not inner.tool_name and inner.tool_call_id:
        return outer.tool_call_id == inner.tool_call_id
    is_same = same_tool(outer.tool_name, inner.tool_name) or _serves(outer, inner)
    return is_same and not _calls_itself(outer, inner)


def _serves(outer: Span, inner: Span) -> bool:
    """Return whether two spans are client and server of the same MCP tool.

    Without MCP attributes, arguments must be equal.
    """
    if not same_mcp_tool(outer.tool_name, inner.tool_name):
        return False
    return is_served(outer) or is_served(inner) or None is not outer.arguments == inner.arguments


def _same_model_call(span: Span, other: Span) -> bool:
    """Return whether two instrumentations recorded the same call: nested times, equal tokens and words."""
    if span.scope == other.scope or span.parent_id != other.parent_id or (span.response_id and other.response_id):
        return False
    one, two = span.usage, other.usage
    if one is None or two is None or (one.input, one.output) != (two.input, two.output):
        return False
    inner, outer = sorted((span, other), key=lambda each: each.end_ns - each.start_ns)
    is_inside = outer.start_ns <= inner.start_ns and inner.end_ns <= outer.end_ns
    return is_inside and _words(span.output or ()) == _words(other.output or ())


def _runs_beside(span: Span, other: Span) -> bool:
    if is_served(other) or not (other.start_ns <= span.start_ns and span.end_ns <= other.end_ns):
        return False
    values = ((span.arguments, other.arguments), (span.result, other.result))
    if any(None not in pair and pair[0] != pair[1] for pair in values):
        return False
    ids = {span.tool_call_id, other.tool_call_id} - {""}
    return len(ids) < 2 and same_mcp_tool(span.tool_name, other.tool_name)


def _calls_itself(outer: Span, inner: Span) -> bool:
    """Return whether a tool calls itself: equal argument names, other values."""
    given, passed = (span.arguments.value if span.arguments else None for span in (outer, inner))
    if not isinstance(given, dict) or not isinstance(passed, dict):
        return False
    return given.keys() == passed.keys() and given != passed


def _merged(group: Sequence[Span], tree: Tree) -> Span:
    """Return the first span completed by the others. Tokens are the largest stated, never a sum."""
    keeper, *others = group
    usages = [span.usage for span in group if span.usage is not None]
    fill: dict[str, object] = {}
    for name in _FILLED:
        if getattr(keeper, name) in _NOTHING:
            values = [getattr(span, name) for span in group]
            fill[name] = next((value for value in values if value not in _NOTHING), values[0])
    if keeper.kind is _AGENT and keeper.output is None:
        # An application calls its SDK once per step: the last step answers.
        answered = (span for span in others if span.output is not None)
        fill["output"] = max(answered, key=lambda span: span.end_ns, default=keeper).output
    fill["output"] = _fullest(keeper.output, others) or fill.get("output")
    heard = [span.input for span in group if span.input]
    fill["input"] = max(heard, key=lambda messages: len(all_parts(messages)), default=keeper.input)
    fill["usage"] = max(usages, key=lambda usage: usage.input + usage.output, default=None)
    fill["dialects"] = tuple(dict.fromkeys(name for span in group for name in span.dialects))
    fill["session_ids"] = tuple(sorted({pair for span in group for pair in span.session_ids}))
    fill["error"] = keeper.error if keeper.error is not None else _outcome(others, tree)
    return keeper.but(**fill)


def _fullest(output: Messages | None, others: Iterable[Span]) -> Messages | None:
    if not output:
        return output
    best = output
    for other in others:
        if other.output and _words(other.output) == _words(best) and _fullness(other.output) > _fullness(best):
            best = other.output
    return best


def _words(output: Messages) -> tuple[str, ...]:
    return tuple([text for message in output if (text := message.text)])


def _fullness(output: Messages) -> tuple[int, int, int]:
    parts = all_parts(output)
    calls = [part for part in parts if type(part) is ToolRequest]
    return len(calls), sum(bool(call.id) for call in calls), sum(type(part) is Reasoning for part in parts)


def _outcome(attempts: Sequence[Span], tree: Tree) -> str | None:
    """Return the error of the last attempt. Earlier attempts were retried."""
    if all(span.error is None for span in attempts):
        return None
    latest = sorted(attempts, key=lambda span: (span.end_ns, -tree.depth(span), span.span_id), reverse=True)
    last = latest[0]
    for inner in latest:
        if last.error is not None:
            break
        if tree.is_within(inner, last):
            last = inner
    return last.error


def _emptied(span: Span) -> Span:
    return span.but(
        kind=Kind.STEP, input=None, output=None, usage=None, arguments=None, result=None, tool_name="", tools=None
    )

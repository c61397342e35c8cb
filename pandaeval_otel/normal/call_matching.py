"""Matches tool spans to models' requests by id, then arguments, then name, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container, Hashable, Mapping, Sequence
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.normal.call import Call
from pandaeval_otel.normal.tool_names import requested_name, same_mcp_tool

_Key = tuple[Hashable, str] | None
_WAYS = (("id", "id"), ("arguments", "arguments"), ("no id", "name"), ("has id", "no id"))
"""Keys that match a span and a request, best first. Calls with different ids are different, unless their arguments are
equal: some instrumentations invent ids."""


def match_calls(run: Sequence[Call], asked: Sequence[Call], served: Container[str]) -> None:
    """Match tool spans to requests and complete the calls. ``served``: tool names of MCP servers."""
    names = {call.name for call in asked}
    strict = {name: requested_name(name, names) for name in {call.name for call in run}}
    if _match_ids(run, asked, strict):
        return
    plain = _served_names(strict, names)
    for of_span, of_request in _WAYS:
        if "id" != of_span != "arguments":  # only the name identifies tools of MCP servers
            plain = {name: own if name in served else strict[name] for name, own in plain.items()}
        run, asked = ([call for call in calls if not call.matched] for calls in (run, asked))
        if not run or not asked:
            return
        _match_by(run, asked, (of_span, of_request), plain)
    _match_strangers(run, asked, plain, names)


def _match_strangers(
    run: Sequence[Call], asked: Sequence[Call], plain: Mapping[str, str], names: Container[str]
) -> None:
    """Match spans with a name that no model asked for, such as a class's, by arguments."""
    strangers = [call for call in run if not call.matched and plain[call.name] not in names]
    _match_by(strangers, [call for call in asked if not call.matched], ("values", "values"), plain)


def _match_by(run: Sequence[Call], asked: Sequence[Call], ways: tuple[str, str], names: Mapping[str, str]) -> None:
    of_span, of_request = ways
    waiting: dict[_Key, deque[Call]] = {}
    for request in asked:
        waiting.setdefault(_key(of_request, request, request.name), deque()).append(request)
    waiting.pop(None, None)
    for call in run:
        queue = waiting.get(_key(of_span, call, names[call.name]))
        _unite(call, queue.popleft() if queue else None)


def _match_ids(run: Sequence[Call], asked: Sequence[Call], names: Mapping[str, str]) -> bool:
    by_id = {(request.id, request.name): request for request in asked if request.id}
    if len(by_id) != len(asked):
        return False
    for call in run:
        _unite(call, by_id.pop((call.id, names[call.name]), None))
    return not by_id


def _served_names(names: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
    found = dict(names)
    for run, own in names.items():
        if own not in asked:
            found[run] = next((name for name in sorted(asked) if same_mcp_tool(run, name)), run)
    return found


def _key(way: str, call: Call, name: str) -> _Key:
    if way == "id":
        if call.id:
            return (call.id, name)
        return None
    if way == "arguments":
        if call.has_arguments:
            return (call.key, name)
        return None
    if way == "values":
        return (call.key, "") if call.arguments else None
    if way == "name" or bool(call.id) == (way == "has id"):
        return ("", name)
    return None


def _unite(call: Call, request: Call | None) -> None:
    if request is None:
        return
    call.matched = request.matched = True
    call.name = request.name
    call.id = call.id or request.id
    # A request in a history stands later than its call. Elsewhere a tool's clock may be behind the model's.
    call.order = min(call.order, request.order) if request.order[1] < 0 else request.order
    if not call.has_arguments or _is_spelled(call.arguments, request.arguments):
        call.arguments, call.has_arguments = request.arguments, request.has_arguments


def _is_spelled(given: Any, asked: Any) -> bool:
    """Return whether a span has the requested arguments with each value as text."""
    if type(given) is not dict or type(asked) is not dict or given == asked or given.keys() != asked.keys():
        return False
    return all(value in (asked[name], str(asked[name]), as_text(asked[name])) for name, value in given.items())

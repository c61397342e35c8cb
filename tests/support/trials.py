"""Recorded trials as OTLP/JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

T0 = 1_767_225_600_000_000_000
MS = 1_000_000
Call = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], Any]


def run(
    number: int,
    *,
    task: str = "Send invoice inv_1",
    calls: Sequence[Call] = (),
    answer: str = "The invoice is sent.",
    case: str = "",
    trial: str = "",
    session: str = "",
    tools: Sequence[Mapping[str, Any]] = (),
    said: str = "",
    state: Any = None,
    event_state: Any = None,
    **attributes: Any,
) -> dict[str, Any]:
    """Return a request with one trace.

    ``attributes``: of the root, ``__`` for dots. ``event_state``: end state on an event.
    """
    start = T0 + number * 1000 * MS
    trace_id = f"{number:032x}"
    own = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "desk",
        "gen_ai.input.messages": _message("user", task),
        "gen_ai.output.messages": _message("assistant", answer),
        **{key.replace("__", "."): value for key, value in attributes.items()},
    }
    own |= {"pandaeval.case.id": case} if case else {}
    own |= {"pandaeval.trial": trial} if trial else {}
    own |= {"gen_ai.conversation.id": session} if session else {}
    own |= {"pandaeval.end_state": json.dumps(state)} if state is not None else {}
    root = _span(trace_id, 1, 0, "invoke_agent desk", start, 900 * MS, own)
    if event_state is not None:
        event = {"pandaeval.end_state": json.dumps(event_state)}
        root["events"] = [{"name": "done", "timeUnixNano": str(start), "attributes": _attributes(event)}]
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "model-a",
        "gen_ai.input.messages": _message("user", task),
        "gen_ai.output.messages": _message("assistant", said or answer),
        "gen_ai.tool.definitions": json.dumps([{"type": "function", **tool} for tool in tools]),
    }
    spans = [root, _span(trace_id, 2, 1, "chat model-a", start + MS, MS, model)]
    for at, (name, arguments, *result) in enumerate(calls, 3):
        tool_attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": json.dumps(result[0] if result else "ok"),
        }
        spans.append(_span(trace_id, at, 1, f"execute_tool {name}", start + at * 10 * MS, MS, tool_attributes))
    resource = {"attributes": _attributes({"service.name": "shop"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def write(path: Path, runs: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in runs), encoding="utf-8")
    return path


def _span(
    trace_id: str, number: int, parent: int, name: str, start: int, took: int, attributes: Mapping[str, Any]
) -> dict[str, Any]:
    of_parent = {"parentSpanId": f"{parent:016x}"} if parent else {}
    return {
        "traceId": trace_id,
        "spanId": f"{number:016x}",
        **of_parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + took),
        "attributes": _attributes(attributes),
    }


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def _attributes(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

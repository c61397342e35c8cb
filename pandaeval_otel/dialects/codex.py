"""Reads Codex CLI: runtime spans, and ``codex.*`` log records or span events.

A turn's span has the request and the tokens. The agent's answer is not exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    Attributes,
    ByKind,
    Logs,
    Outcome,
    RawSpan,
    Reading,
    Switch,
    fill,
    give_outcome,
    hidden,
    identifier,
    keys,
    log_name,
    one_session,
    tool_outcome,
    usage_in,
)
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Text, ToolRequest, ToolResponse, Usage

_SCOPE = "codex"
_TURN, _MODEL, _CALL = "session_task.turn", "handle_responses", "dispatch_tool_call"
_PROMPT, _RESULT, _STREAMED = "codex.user_prompt", "codex.tool_result", "codex.sse_event"
_SPENT = "codex.turn.token_usage"
_WORDS = ("input", "output", "cached_input", "cache_write_input", "reasoning_output")
_COUNTS = ("input_token_count", "output_token_count", "cached_token_count", (), "reasoning_token_count")
_NO_ANSWER = "no answer: Codex does not export the answers of the agent"
_CALL_KEYS = keys(tool_name="tool_name", tool_call_id="call_id", arguments="arguments")
_Record = tuple[str, Attributes]


class Codex(ByKind):
    name = "codex"
    priority = 80
    roots = frozenset({"codex"})
    scopes = (_SCOPE,)
    content_switch = Switch(
        {
            _SCOPE: "set log_user_prompt = true under [otel] in ~/.codex/config.toml, and send its log records here "
            "as well"
        }
    )

    def read_span(self) -> Reading | None:
        if not self.span.scope.name.startswith(_SCOPE):
            return None
        records = [*_records(self.span, self.logs)]
        results = _results(records)
        self.kind = _kind_of(self.span, records, len(results))
        everything = [self.attributes, *(attributes for _, attributes in records)]
        sessions = [one_session(attributes.get("conversation.id")) for attributes in everything]
        self.session_ids = next(filter(None, [*sessions[1:], sessions[0]]), ())
        if self.kind in (Kind.AGENT, Kind.LLM):
            models = (identifier(attributes.get("model")) for attributes in everything)
            self.request_model = next(filter(None, models), "")
            self.usage = _usage(self.span, records)
        if self.kind is Kind.AGENT:
            _read_turn(self, records, results)
        elif self.kind is Kind.TOOL:
            call = {**self.attributes, **(results[0] if results else {})}
            fill(self, call, _CALL_KEYS)
            give_outcome(self, _outcome(call))
        return self


DIALECT = Codex


def _records(span: RawSpan, logs: Logs) -> Iterator[_Record]:
    for log in sorted(logs, key=lambda log: log.time_ns):
        yield log_name(log), log.attributes
    for event in span.events:
        name = str(event.attributes.get(semconv.EVENT_NAME) or event.name)
        if name in (_PROMPT, _RESULT) or not logs:
            yield name, event.attributes


def _kind_of(span: RawSpan, records: Sequence[_Record], results: int) -> Kind:
    if span.name == _TURN or any(name == _PROMPT for name, _ in records):
        return Kind.AGENT
    if span.name == _MODEL:
        return Kind.LLM
    if span.name == _CALL or results == 1:
        return Kind.TOOL
    if results:
        return Kind.AGENT
    return Kind.STEP


def _usage(span: RawSpan, records: Sequence[_Record]) -> Usage | None:
    """Return the tokens of a turn or model call. Input includes cached tokens."""
    counted = [usage_in(attributes, *_COUNTS) for name, attributes in records if name == _STREAMED]
    stated = usage_in(span.attributes, *[f"{_SPENT}.{word}_tokens" for word in _WORDS])
    return stated or (sum(filter(None, counted), Usage()) if any(counted) else None)


def _read_turn(reading: Reading, records: Sequence[_Record], results: Sequence[Attributes]) -> None:
    prompts = [attributes.get("prompt") for name, attributes in records if name == _PROMPT]
    reading.agent_name = "codex"
    reading.input = tuple(Message("user", (Text(str(prompt)),)) for prompt in prompts if not hidden(prompt)) or None
    calls = [message for result in results for message in _as_messages(result)]
    reading.output = (*calls, Message("assistant", (NOT_CAPTURED,)))
    reading.notes = (_NO_ANSWER,)


def _results(records: Sequence[_Record]) -> list[Attributes]:
    calls: dict[str, Attributes] = {}
    for name, attributes in records:
        if name == _RESULT and identifier(attributes.get("tool_name")):
            key = identifier(attributes.get("call_id")) or f"{len(calls)}"
            if key not in calls or ("arguments" in attributes and "arguments" not in calls[key]):
                calls[key] = attributes
    return [*calls.values()]


def _outcome(attributes: Attributes) -> Outcome:
    outcome = tool_outcome(attributes.get("output"))
    failed = str(attributes.get("success")).lower() == "false"
    return Outcome(outcome.result, failed=failed or outcome.failed)


def _as_messages(attributes: Attributes) -> Iterator[Message]:
    call = Reading()
    fill(call, attributes, _CALL_KEYS)
    outcome = _outcome(attributes)
    yield Message(
        "assistant", (ToolRequest(call.tool_name, call.arguments and call.arguments.value, call.tool_call_id),)
    )
    result: Any = outcome.result and outcome.result.value
    if outcome.failed:
        result = {"content": result or "failed", "is_error": True}
    if outcome.failed or outcome.result is not None:
        yield Message("tool", (ToolResponse(result, call.tool_call_id, call.tool_name),))

"""Reads Codex CLI's own telemetry: spans of its runtime, and log records (or events on spans) that tell what happened.

A turn's span holds what the user asked and the tokens; calls of tools with arguments and outputs are told there or on
the calls' own spans. What the agent answers is sent nowhere. All other spans are steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._common import give_outcome, one_session, usage_in
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._reading import Attributes, Dialect, Reading
from pandaeval_otel.dialects._tool_values import Outcome, tool_arguments, tool_outcome
from pandaeval_otel.dialects._values import hidden, identifier
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Text, ToolRequest, ToolResponse, Usage
from pandaeval_otel.model.raw import RawLog, RawSpan

_SCOPE = "codex"
_TURN, _MODEL, _CALL = "session_task.turn", "handle_responses", "dispatch_tool_call"
_PROMPT, _RESULT, _STREAMED = "codex.user_prompt", "codex.tool_result", "codex.sse_event"
_SPENT = "codex.turn.token_usage"
_WORDS = ("input", "output", "cached_input", "cache_write_input", "reasoning_output")
_COUNTS = ("input_token_count", "output_token_count", "cached_token_count", (), "reasoning_token_count")
_NO_ANSWER = "Codex tells no answers: what the agent said is not in its telemetry"


class Codex(Dialect):
    """Reads spans and ``codex.*`` records of Codex CLI, its app server and ``codex exec``."""

    name = "codex"
    priority = 80
    roots = frozenset({"codex"})
    scopes = (_SCOPE,)
    content_switch: Mapping[str, str] = {
        _SCOPE: "set log_user_prompt = true under [otel] in ~/.codex/config.toml, and send its log records here as well"
    }

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        if not span.scope.name.startswith(_SCOPE):
            return None
        told = [*_told(span, logs)]
        prompts = [attributes for name, attributes in told if name == _PROMPT]
        results = _results(told)
        if prompts or span.name == _TURN:
            reading = Reading(Kind.AGENT)
        elif span.name == _MODEL:
            reading = Reading(Kind.LLM)
        elif span.name == _CALL or len(results) == 1:
            reading = Reading(Kind.TOOL)
        else:
            reading = Reading(Kind.AGENT if results else Kind.STEP)
        everything = [span.attributes, *(attributes for _, attributes in told)]
        sessions = [one_session(attributes.get("conversation.id")) for attributes in everything]
        reading.session_ids = next(filter(None, [*sessions[1:], sessions[0]]), ())
        if reading.kind in (Kind.AGENT, Kind.LLM):
            models = (identifier(attributes.get("model")) for attributes in everything)
            reading.request_model = next(filter(None, models), "")
            # Of a turn or of one model call; input tokens hold cached ones.
            counted = [usage_in(attributes, *_COUNTS) for name, attributes in told if name == _STREAMED]
            stated = usage_in(span.attributes, *[f"{_SPENT}.{word}_tokens" for word in _WORDS])
            reading.usage = stated or (sum(filter(None, counted), Usage()) if any(counted) else None)
        if reading.kind is Kind.AGENT:
            reading.agent_name = "codex"
            said = [str(each["prompt"]) for each in prompts if not hidden(each.get("prompt"))]
            reading.input = tuple(Message("user", (Text(text),)) for text in said) or None
            messages = [message for each in results for message in _as_messages(each)]
            reading.output = (*messages, Message("assistant", (NOT_CAPTURED,)))
            reading.notes = (_NO_ANSWER,)
        elif reading.kind is Kind.TOOL:
            both = {**span.attributes, **(results[0] if results else {})}
            reading.tool_name = identifier(both.get("tool_name"))
            reading.tool_call_id = identifier(both.get("call_id"))
            reading.arguments = tool_arguments(both.get("arguments"))
            give_outcome(reading, _outcome(both))
        return reading


DIALECT = Codex()


def _told(span: RawSpan, logs: Sequence[RawLog]) -> Iterator[tuple[str, Attributes]]:
    """Yields name and attributes of the span's log records, in order, and then of its events, which tell less."""
    for log in sorted(logs, key=lambda log: log.time_ns):
        yield log_name(log), log.attributes
    for event in span.events:
        name = str(event.attributes.get(semconv.EVENT_NAME) or event.name)
        if name in (_PROMPT, _RESULT) or not logs:
            yield name, event.attributes


def _results(told: Sequence[tuple[str, Attributes]]) -> list[Attributes]:
    """Returns the records of calls, each call once: the first record that tells most."""
    found: dict[str, Attributes] = {}
    for name, attributes in told:
        if name == _RESULT and identifier(attributes.get("tool_name")):
            key = identifier(attributes.get("call_id")) or f"{len(found)}"
            if key not in found or ("arguments" in attributes and "arguments" not in found[key]):
                found[key] = attributes
    return [*found.values()]


def _outcome(attributes: Attributes) -> Outcome:
    """Returns what a call gave back; a record that says ``success: false`` tells of a failure."""
    outcome = tool_outcome(attributes.get("output"))
    failed = str(attributes.get("success")).lower() == "false"
    return Outcome(outcome.result, failed=failed or outcome.failed)


def _as_messages(attributes: Attributes) -> Iterator[Message]:
    name, call_id = identifier(attributes.get("tool_name")), identifier(attributes.get("call_id"))
    given, outcome = tool_arguments(attributes.get("arguments")), _outcome(attributes)
    yield Message("assistant", (ToolRequest(name, given.value if given else None, call_id),))
    if outcome.result is not None or outcome.failed:
        result: Any = outcome.result.value if outcome.result else None
        result = {"content": result or "failed", "is_error": True} if outcome.failed else result
        yield Message("tool", (ToolResponse(result, call_id, name),))

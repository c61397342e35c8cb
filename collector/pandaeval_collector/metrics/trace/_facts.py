"""What the spans say by themselves about a run, as judged metrics need it: nothing here asks a model."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.judge.neutral import elided, visible
from pandaeval_collector.judge.redact import redact, redact_value
from pandaeval_otel.model import ToolCall, Trace

_MAX_TEXT = 2000
"""Characters of a text that a result's metadata hold."""
_MAX_VALUE = 1000
_MAX_LISTED = 100


def user_input(trace: Trace) -> str | None:
    """What the user said in all turns, without secrets and at most about 2000 characters; ``None``: not captured."""
    said = [turn.user for turn in trace.turns if turn.user and turn.user.strip()]
    text = "\n\n".join(said) or (trace.input or "").strip()
    return elided(redact(text), _MAX_TEXT) if text else None


def answered(trace: Trace) -> bool:
    """Whether there is an answer that says anything: an empty one, or one of a punctuation mark, does not."""
    return any(says_something(text) for text in (trace.output, *(turn.assistant for turn in trace.turns)))


def says_something(text: str | None) -> bool:
    """Whether a text holds a letter, a digit or a pictograph: nothing, or punctuation alone, is no answer."""
    kinds = (unicodedata.category(sign) for sign in visible(text or ""))
    return any(kind[0] in "LN" or kind == "So" for kind in kinds)


def crashed(trace: Trace) -> bool:
    """The run ended with an error, and its last answer says nothing."""
    last = trace.turns[-1].assistant if trace.turns else None
    return trace.error is not None and not says_something(trace.output) and not says_something(last)


def has_steps(trace: Trace) -> bool:
    """Whether tools were called or thoughts were captured."""
    return bool(trace.tool_calls) or any(says_something(text) for text in trace.reasoning)


def nothing_captured(trace: Trace) -> bool:
    """Neither what was asked nor what was answered nor a step."""
    return user_input(trace) is None and not answered(trace) and not has_steps(trace)


def tools_called(trace: Trace) -> list[dict[str, Any]]:
    """``{name, parameters}`` of the calls in their order; of more than 100 the first and last 50. Without secrets."""
    return [{"name": call.name, "parameters": parameters(call)} for call in _ends(trace.tool_calls)]


def available_tools(trace: Trace) -> list[dict[str, str]]:
    """``{name, description}`` of the first 100 tools that the agent had, without secrets."""
    return [
        {"name": tool.name, "description": elided(redact(tool.description), _MAX_VALUE)}
        for tool in trace.tools[:_MAX_LISTED]
    ]


def parameters(call: ToolCall) -> Any:
    """A call's arguments without secrets; as a shortened text when they are long, ``None`` when not captured."""
    if not call.has_arguments:
        return None
    value = redact_value(call.arguments)
    text = as_text(value)
    return value if isinstance(value, Mapping) and len(text) <= _MAX_VALUE else elided(text, _MAX_VALUE)


def as_text(value: Any) -> str:
    """A value as JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _ends(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    half = _MAX_LISTED // 2
    return calls if len(calls) <= _MAX_LISTED else (*calls[:half], *calls[-half:])

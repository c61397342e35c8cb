"""Whether something that the agent may have had was not captured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from pandaeval_collector.analysis.rules.grounding._sources import Before
from pandaeval_otel.model import Kind, Message, Span, Trace
from pandaeval_otel.model.message import any_hidden
from pandaeval_otel.normal.session import is_history
from pandaeval_otel.normal.speech import is_user_turn

BEFORE = "the conversation before was not captured"
INSTRUCTIONS = "the agent's instructions were not captured"
_DOTS = ("...", "…")
_CUT = re.compile(r"truncated[^\n]{0,40}\Z", re.IGNORECASE)
_CLOSED = {"{": "}", "[": "]"}


def not_captured(trace: Trace) -> str | None:
    """What of this trace itself is missing, in words: results, messages, the user's words."""
    calls = trace.tool_calls
    if [call for call in calls if not call.has_result and call.error is None]:
        return "results of tools were not captured"
    if any_cut([call.result for call in calls if call.has_result]):
        return "results of tools were captured in part"
    if any_hidden(chain(*[span.input for span in trace.spans if span.kind is Kind.LLM and span.input])):
        return "messages were captured in part"
    if (trace.input is None and not trace.turns) or None in [turn.user for turn in trace.turns]:
        return "the user's words were not captured"
    return None


def any_cut(results: Sequence[Any]) -> bool:
    """Whether one of the results breaks off: it ends in dots or says that it is truncated, or is JSON that nobody
    closed."""
    for result in results:
        if not isinstance(result, str):
            continue
        text = result.strip()
        closing = _CLOSED.get(text[:1])
        if closing is not None and text[1:2] in '"{[' and closing not in text:
            return True
        if text.endswith(_DOTS) or ("truncated" in text[-60:].lower() and _CUT.search(text[-60:]) is not None):
            return True
    return False


def hidden(trace: Trace, before: Before | None = None) -> str | None:
    """What is missing, in words; ``None`` where the agent had nothing beyond what the trace shows and ``before``, what
    the earlier traces of its session held.

    Without ``before``, a first call in a session with neither instructions nor history may be the middle of a
    conversation. The first trace of a session is whole, if its first call begins with the user's message."""
    missing = not_captured(trace)
    if missing is not None:
        return missing
    known = before.responses if before is not None else ()
    if _kept_elsewhere(trace) and trace.continues not in known and not shows_history(trace):
        return BEFORE
    if before is not None and not before.first:
        return before.hidden
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    goes_on = trace.session_id is not None or bool(trace.continues)
    if not goes_on or not models or _whole(models):
        return None
    begins = [message.role for message in models[0].input or ()][:1] == ["user"]
    return None if before is not None and begins else BEFORE


def instructed(trace: Trace) -> bool:
    """Whether the spans hold instructions."""
    for span in trace.spans:
        if span.system:
            return True
        for message in span.input or ():
            if message.role == "system":
                return True
    return False


def _kept_elsewhere(trace: Trace) -> bool:
    """Whether it goes on from a response whose history the provider keeps."""
    return bool(trace.continues) and not is_history(trace.continues)


def shows_history(trace: Trace) -> bool:
    """Whether the spans hold a conversation before the last message of a user. Where they do, it is whole; where they
    do not, there may have been one all the same: many frameworks keep it to themselves."""
    if len(trace.turns) > 1:
        return True
    inputs = [span.input for span in trace.spans if span.input and len(span.input) > 1 and span.kind is not Kind.TOOL]
    return any(map(_answered_before, inputs))


def _answered_before(messages: Sequence[Message]) -> bool:
    answered = False
    for message in messages:
        if answered and is_user_turn(message):
            return True
        answered = answered or message.role == "assistant"
    return False


def _whole(models: list[Span]) -> bool:
    """Whether the first call shows instructions or history, as it does where conversations are captured as a whole."""
    if models[0].system:
        return True
    return any(message.role in ("system", "assistant") for message in models[0].input or ())

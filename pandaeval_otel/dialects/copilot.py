"""Reads GitHub Copilot: messages of spans with ``github.copilot.*`` or ``copilot_chat.*``.

VS Code has the user's own words and the model's thoughts in separate attributes.
"""

from __future__ import annotations

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._kit import (
    ByKind,
    Reading,
    Switch,
    hidden,
    read_messages,
    said_by_user,
    with_thought,
)
from pandaeval_otel.model import Message

_TYPED, _THOUGHT = "copilot_chat.user_request", "copilot_chat.reasoning_content"
_SWITCH = "set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"


class Copilot(ByKind):
    name = "copilot"
    priority = 70
    roots = frozenset({"github", "copilot_chat"})
    content_switch = Switch(
        {
            "github.copilot": _SWITCH,
            "copilot-chat": f"{_SWITCH}, or github.copilot.chat.otel.captureContent in the settings",
        }
    )

    def read_span(self) -> Reading | None:
        typed, thought = said_by_user(self.get(_TYPED)), self.get(_THOUGHT)
        if typed:  # in place of the last message of the user
            given = read_messages(self.get(semconv.INPUT_MESSAGES), "user")[0] or ()
            places = [at for at, message in enumerate(given) if message.role == "user" and message.text]
            last = max(places, default=len(given))
            self.input = (*given[:last], *typed, *given[last + 1 :])
        if not hidden(thought):
            made = read_messages(self.get(semconv.OUTPUT_MESSAGES), "assistant")[0]
            self.output = with_thought(made or (Message("assistant", ()),), thought)
        return self.stated()


DIALECT = Copilot

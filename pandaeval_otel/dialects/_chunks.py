"""Streamed answers that were recorded chunk by chunk, one message each (ADK), put together again."""

from __future__ import annotations

from pandaeval_otel.dialects._messages import Messages
from pandaeval_otel.model import Message, Part, Reasoning, Text

_SENTENCE_END = (".", "!", "?", ":", "\n")


def without_chunks(output: Messages | None) -> Messages | None:
    """``output`` with a streamed answer as one message. It is one when several assistant messages carry a single finish
    reason, on the last of them; separate answers carry one each."""
    if not output or len(output) < 2 or not output[-1].finish_reason:
        return output
    if any(message.role != "assistant" or message.finish_reason for message in output[:-1]):
        return output
    parts: list[Part] = []
    for message in output:
        for part in message.parts:
            _append(parts, part)
    return (Message("assistant", tuple(parts), output[-1].finish_reason),)


def _append(parts: list[Part], part: Part) -> None:
    last = parts[-1] if parts else None
    if isinstance(part, Text) and isinstance(last, Text) and _continues(last.text, part.text):
        parts[-1] = Text(last.text + part.text)
    elif isinstance(part, Reasoning) and isinstance(last, Reasoning) and _continues(last.text, part.text):
        parts[-1] = Reasoning(last.text + part.text)
    else:
        parts.append(part)


def _continues(before: str, after: str) -> bool:
    """Whether a text runs on: chunks end anywhere, but what follows a full stop without a space is another text."""
    return not (before.endswith(_SENTENCE_END) and after[:1].isupper())

"""Splits and repairs the transcript of a whole run: its question, and all that followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._events import is_input, message_of_event
from pandaeval_otel.dialects._messages import Messages, tells
from pandaeval_otel.dialects._values import as_list, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Text, ToolRequest, ToolResponse

_ANSWER_WRAPPER = frozenset({"response"})
"""The one parameter of an output tool for answers that are no objects (Pydantic AI)."""


def split_run(messages: Messages, earlier: int = 0) -> tuple[Messages, Messages]:
    """Splits ``messages`` into all up to the question of this run, and all that followed it.

    ``earlier``: how many requests and responses of previous runs come first, where consecutive messages of others than
    the assistant are one request. If 0, the question is the last message in which a user speaks.
    """
    begin = _begin(messages, earlier) if earlier > 0 else None
    asked = _after_question(messages) if begin is None else _next_answer(messages, begin)
    return messages[:asked], messages[asked:]


def _begin(messages: Messages, earlier: int) -> int | None:
    """Returns the index of the first message after ``earlier`` requests and responses; ``None`` if there are fewer."""
    passed = 0
    for index, message in enumerate(messages):
        if message.role == "assistant" or index == 0 or messages[index - 1].role == "assistant":
            if passed == earlier:
                return index
            passed += 1
    return None


def _next_answer(messages: Messages, begin: int) -> int:
    for index in range(begin, len(messages)):
        if messages[index].role == "assistant":
            return index
    return len(messages)


def _after_question(messages: Messages) -> int:
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user" and not messages[index].tool_responses:
            return index + 1
    return 0


def with_answer(made: Messages, answer: str) -> Messages:
    """Returns ``made`` with ``answer`` as the assistant's last words, unless they are that already."""
    said = [message.text for message in made if message.role == "assistant" and message.text]
    if said and (said[-1] == answer or parsed(said[-1]) == parsed(answer)):
        return made
    return (*made, Message("assistant", (Text(answer),)))


def without_carriers(messages: Messages, carries: Callable[[str], bool]) -> Messages:
    """Returns ``messages`` with calls of tools that only carry an answer (``carries`` tells by name) turned into text,
    and without the responses to them."""
    if not any(carries(request.name) for message in messages for request in message.tool_requests):
        return messages
    carried: set[str] = set()
    found: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolRequest) and carries(part.name):
                carried.add(part.id)
                parts.append(_answer_in(part.arguments))
            elif not (isinstance(part, ToolResponse) and (carries(part.name) or (part.id and part.id in carried))):
                parts.append(part)
        if parts or not message.parts:
            found.append(Message(message.role, tuple(parts), message.finish_reason))
    return tuple(found)


def _answer_in(arguments: Any) -> Part:
    if type(arguments) is dict and arguments.keys() == _ANSWER_WRAPPER:
        arguments = arguments["response"]
    if arguments is None:
        return NOT_CAPTURED
    return Text(arguments if type(arguments) is str else as_text(arguments))


def told_in_list(value: Any) -> tuple[Messages | None, Messages | None]:
    """Returns a model's input and answer from a list of per-message events in one attribute, each a map of the body's
    members and its ``event.name``. ``None`` for a side that the list lacks or that was hidden."""
    given: list[Message] = []
    made: list[Message] = []
    for item in as_list(value):
        event = parsed(item)
        if type(event) is not dict:
            continue
        name = str(event.get(semconv.EVENT_NAME) or "")
        message = message_of_event(name, event)
        if message is not None:
            (given if is_input(name) else made).append(message)
    return tuple(given) if tells(given) else None, tuple(made) if tells(made) else None

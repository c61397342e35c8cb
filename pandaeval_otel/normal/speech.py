"""Reads a list of messages: where a user's turn begins, what was asked and what was answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._replays import is_replay
from pandaeval_otel.dialects._tool_values import is_final_answer
from pandaeval_otel.model import Media, Message, Part, Span, Text, ToolRequest, ToolResponse


@dataclass(slots=True, unsafe_hash=True)  # never changed
class Said:
    """``text``: ``None`` = not captured, ``""`` = captured and empty. ``media_only``: there was something, but no
    words. ``pending``: a tool was asked for and has not answered yet."""

    text: str | None = None
    media_only: bool = False
    pending: bool = False


NOTHING = Said()

_TOOL_PARTS = (ToolRequest, ToolResponse)


def is_user_turn(message: Message) -> bool:
    """A user speaks: text or media in role user; not tool results, not a framework's replay of another agent."""
    parts = message.parts
    if message.role != "user" or not parts:
        return False
    for part in parts:
        if type(part) is ToolResponse:
            return False
    first = parts[0]
    return not (type(first) is Text and is_replay(first.text))


def is_cut(messages: Sequence[Message]) -> bool:
    """Whether a length limit ended the list early. Whoever spoke after that is not known, so what stands last is not
    the latest."""
    return bool(messages) and messages[-1].role != "user" and messages[-1].hidden


def current_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the last user message: what is before it is history. Nothing of a list that was cut."""
    if not messages or is_cut(messages):
        return ()
    for index in range(len(messages) - 1, -1, -1):
        if is_user_turn(messages[index]):
            return messages[index + 1 :]
    return messages


def tool_requests(messages: Iterable[Message]) -> list[ToolRequest]:
    """Requests for tools, in order; not those by which a model hands over its answer, nor those whose name is lost."""
    found: list[ToolRequest] = []
    for message in messages:
        for part in message.parts:
            if type(part) is ToolRequest and asks_for_tool(part):
                found.append(part)  # noqa: PERF401 - there are few, and a comprehension has a frame of its own
    return found


def asks_for_tool(request: ToolRequest) -> bool:
    """Whether a request is for a tool, and not how the model hands over its answer or a call whose name is lost."""
    return bool(request.name) and not is_final_answer(request.name, request.arguments)


def user_messages(messages: Sequence[Message]) -> list[str]:
    """The texts of the user's messages; those that follow each other are one."""
    return ["\n".join(message.text for message in group) for group in _user_groups(messages)]


def asked(span: Span) -> Said:
    """The last thing that the user says in a span's input."""
    if span.input is None or is_cut(span.input):
        return NOTHING
    if not span.input:
        return Said("")
    if (text := _only_text(span.input, "user")) is not None and not is_replay(text):
        return Said(text)
    group = next(_user_groups(span.input[::-1]), None)
    if group is None or (group[0].hidden and _is_history(span.input, group)):
        return NOTHING
    return _worded([part for message in reversed(group) for part in message.parts])


def _only_text(messages: Sequence[Message], role: str) -> str | None:
    """What is said where there is nothing but one text of this role, as most agents are asked and answer."""
    if len(messages) != 1 or messages[0].role != role or len(messages[0].parts) != 1:
        return None
    part = messages[0].parts[0]
    return part.text if type(part) is Text else None


def _is_history(messages: Sequence[Message], group: Sequence[Message]) -> bool:
    """Whether something was said before this message, the last of a list: where a length limit cut such a message in
    two, it may as well have cut off later ones."""
    return group[0] is messages[-1] and any(message.role != "system" and message not in group for message in messages)


def _worded(parts: Sequence[Part]) -> Said:
    if len(parts) == 1 and type(parts[0]) is Text:
        return Said(parts[0].text)
    text = "\n".join(part.text for part in parts if type(part) is Text and part.text)
    if text or all(type(part) is Text for part in parts):
        return Said(text)
    return Said(None, media_only=True) if any(type(part) is Media for part in parts) else NOTHING


def _user_groups(messages: Sequence[Message]) -> Iterator[list[Message]]:
    group: list[Message] = []
    for message in messages:
        if is_user_turn(message):
            group.append(message)
        elif group and message.role != "system":
            yield group
            group = []
    if group:
        yield group


def answered(output: Sequence[Message] | None) -> Said:
    """The last text in a span's output that no tool call is pending after."""
    if output is None:
        return NOTHING
    if not output:
        return Said("")
    if (text := _only_text(output, "assistant")) is not None:
        return Said(text)
    served = False
    silent = False
    for message in reversed(output):
        served = served or any(type(part) is ToolResponse for part in message.parts)
        if message.role not in ("assistant", ""):
            continue
        said = _answer_of(message, served)
        if said.text or said.pending or said.media_only or message.hidden:
            return said
        silent = silent or said.text == ""
    return Said("") if silent else NOTHING


def _answer_of(message: Message, served: bool) -> Said:
    requests = message.tool_requests
    handed = next((request for request in requests if not asks_for_tool(request) and request.name), None)
    if handed is not None:
        return Said(_handed_over(handed.arguments))
    if requests and not served:
        return Said(pending=True)
    return _worded(_last_parts(message.parts) if requests else message.parts)


def _last_parts(parts: Sequence[Part]) -> Sequence[Part]:
    """Those after the last tool part, where a whole run stands in one message in order; else all others, since some
    put the answer first."""
    at = max(at for at, part in enumerate(parts) if type(part) in _TOOL_PARTS)
    return parts[at + 1 :] or [part for part in parts if type(part) not in _TOOL_PARTS]


def _handed_over(arguments: Any) -> str | None:
    """The answer that a model gave as arguments of a tool: the only one, or all of them as JSON."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        arguments = next(iter(arguments.values()))
    if arguments is None or isinstance(arguments, str):
        return arguments
    return as_text(arguments)

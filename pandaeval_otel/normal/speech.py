"""Reads a list of messages: where a user's turn begins, what was asked and what was answered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._tool_values import is_final_answer, may_be_final_answer
from pandaeval_otel.model import Media, Message, Part, Reasoning, Span, Text, ToolRequest, ToolResponse

_TOOL_PARTS = (ToolRequest, ToolResponse)
_ENDED = frozenset({"stop", "end_turn", "completed"})
"""Reasons for which a model ends an answer by itself, in lower case."""
_RECEIPTS = ("Returning structured response", "Final result processed")
"""Beginnings of the responses to tools that only carry an answer: of LangChain, of Pydantic AI."""
_HANDS_OVER = "final_answer"
_LONG_RESULT = 4000
"""Characters of a cut result below which the list may have been cut anywhere."""
_REQUESTS = ("userRequest", "user_request", "user_query", "user_message", "user_input")
_WRAPPERS = (
    r"current_?(?:date_?time|date|time)|system[-_]reminder|reminder_?[iI]nstructions|editor_?[cC]ontext|"
    r"environment_(?:context|details|info)|additional_(?:data|context)|attachments|workspace_info|repository_?[iI]nfo"
)
_WRAPPED_AT_START = re.compile(rf"<({_WRAPPERS}|session_context)(?:\s[^<>]{{0,200}})?>")
_WRAPPED_AT_END = re.compile(rf"</({_WRAPPERS})>\Z")
_LONGEST_TAG, _MOST_WRAPPERS = 40, 16
_REPLAYS = ("For context:", "Observation:\n")
"""Beginnings of user messages that frameworks write: ADK retells what another agent did, smolagents what a tool
returned."""


def is_replay(text: str) -> bool:
    """Returns whether a framework, rather than a user, wrote the user message with this text."""
    return text.startswith(_REPLAYS)


@dataclass(slots=True, unsafe_hash=True)  # never changed
class Said:
    """One side of an exchange. ``text``: ``None`` = not captured, ``""`` = captured and empty. ``media_only``: media
    without words. ``pending``: a tool call that has no answer yet."""

    text: str | None = None
    media_only: bool = False
    pending: bool = False


NOTHING = Said()


def is_user_turn(message: Message) -> bool:
    """Returns whether a user speaks: text or media in role ``user``, but neither tool results nor a framework's replay
    of another agent."""
    parts = message.parts
    if message.role != "user" or not parts:
        return False
    for part in parts:
        if type(part) is ToolResponse:
            return False
    first = parts[0]
    return not (type(first) is Text and is_replay(first.text))


def is_cut(messages: Sequence[Message]) -> bool:
    """Returns whether a length limit ended the list early, so that its last message need not be the latest."""
    return bool(messages) and messages[-1].role != "user" and messages[-1].hidden


def current_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Returns the messages after the last user message (those before it are history); none of a list that was cut."""
    if not messages or is_cut(messages):
        return ()
    for index in range(len(messages) - 1, -1, -1):
        if is_user_turn(messages[index]):
            return messages[index + 1 :]
    return messages


def tool_requests(messages: Iterable[Message]) -> list[ToolRequest]:
    """Returns the requests for tools in order, as :func:`asks_for_tool` tells them."""
    found: list[ToolRequest] = []
    for message in messages:
        for part in message.parts:
            if type(part) is ToolRequest and asks_for_tool(part):
                found.append(part)  # noqa: PERF401 - there are few, and a comprehension has a frame of its own
    return found


def asks_for_tool(request: ToolRequest) -> bool:
    """Returns whether a request is for a tool, rather than the model's way to hand over its answer or a call whose name
    is lost."""
    name = request.name
    return bool(name) and not (may_be_final_answer(name) and is_final_answer(name, request.arguments))


def handed_over(output: tuple[Message, ...]) -> tuple[Message, ...]:
    """Returns ``output`` with the call of a tool that only carries an answer under the name of such tools, and without
    its response, which frameworks word in the same way for any tool."""
    responses = [part for message in output for part in message.tool_responses if _is_receipt(part)]
    if not responses:
        return output
    ids, names = {part.id for part in responses if part.id}, {part.name for part in responses if not part.id}
    answer: ToolRequest | None = None
    for message in output:
        for request in message.tool_requests:
            answer = request if request.id in ids or request.name in names else answer
    kept = [message.with_parts(*[part for part in message.parts if part not in responses]) for message in output]
    text = next((part.result.partition(": ")[2] for part in responses), "")
    said = Text(text) if answer is None else ToolRequest(_HANDS_OVER, answer.arguments, answer.id)
    return (*[message for message in kept if message.parts], Message("assistant", (said,)))


def _is_receipt(part: ToolResponse) -> bool:
    return type(part.result) is str and part.result.startswith(_RECEIPTS)


def unfolded(output: tuple[Message, ...]) -> tuple[Message, ...]:
    """Returns ``output`` with each answer in which the provider ran tools spread over several messages, as if the
    application had run them: words and calls, the results, the words that follow."""
    messages: list[Message] = []
    for message in output:
        parts = _of_provider(message)
        messages += _spread(message, parts) if parts else (message,)
    if len(messages) == len(output):
        return output
    return tuple(messages)


def _of_provider(message: Message) -> tuple[Part, ...]:
    """Returns the parts of an answer in which the provider ran tools; ``()`` for other messages. If an answer ended by
    itself, with words behind its calls, the provider ran them."""
    parts = message.parts
    if len(parts) < 2 or not any(type(part) is ToolRequest for part in parts[:-1]):
        return ()
    last = parts[-1]
    if message.finish_reason.lower() in _ENDED and type(last) is Text and last.text.strip():
        return tuple([replace(part, hosted=True) if type(part) is ToolRequest else part for part in parts])
    if any(type(part) is ToolRequest and part.hosted for part in parts):
        return parts
    return ()


def _spread(message: Message, parts: Sequence[Part]) -> Iterator[Message]:
    """Yields a message for each row of parts up to its calls, and for each row of results."""
    row: list[Part] = []
    for part in parts:
        is_result, before = type(part) is ToolResponse, type(row[-1]) if row else None
        if (row and is_result != (before is ToolResponse)) or (before is ToolRequest and type(part) is not ToolRequest):
            yield Message("tool" if before is ToolResponse else message.role, tuple(row))
            row = []
        row.append(part)
    yield Message("tool" if type(row[-1]) is ToolResponse else message.role, tuple(row), message.finish_reason)


def user_messages(messages: Sequence[Message]) -> list[str]:
    """Returns the texts of the user's messages; consecutive ones are joined."""
    return ["\n".join(message.text for message in group) for group in _user_groups(messages)]


def asked(span: Span) -> Said:
    """Returns what the user says last in a span's input."""
    if span.input is None or (is_cut(span.input) and not _is_unanswered(span.input)):
        return NOTHING
    if not span.input:
        return Said("")
    if (text := _only_text(span.input, "user")) is not None and not is_replay(text):
        return Said(words_of_user(text))
    group = next(_user_groups(span.input[::-1]), None)
    if group is None:
        return NOTHING
    # Of a longer conversation whose last message was cut in two, later ones may have been cut off.
    if (
        group[0].hidden
        and group[0] is span.input[-1]
        and any(message.role != "system" and message not in group for message in span.input)
    ):
        return NOTHING
    said = _worded([part for message in reversed(group) for part in message.parts])
    if said.text is None:
        return said
    return Said(words_of_user(said.text), said.media_only)


def _is_unanswered(messages: Sequence[Message]) -> bool:
    """Returns whether a list that was cut has one user message, no answer to it, and ends within a result that is
    longer than all before it: that has most likely just come, and is what made the list too long."""
    last = messages[-1].parts[0] if messages[-1].parts else None
    size = len(last.result) if type(last) is ToolResponse and type(last.result) is str else 0
    before = sum(len(part.text) for message in messages for part in message.parts if type(part) is Text)
    if size < max(_LONG_RESULT, before) or len([*_user_groups(messages)]) != 1:
        return False
    return not any(message.role == "assistant" and message.text for message in messages)


def words_of_user(text: str) -> str:
    """Returns a user's message without what editors and frameworks wrap around it: the time of day, the workspace,
    their own reminders. Returns the whole text where nothing else is left."""
    if "</" not in text:
        return text
    asked = None
    for tag in _REQUESTS:
        end = text.rfind(f"</{tag}>")
        start = text.rfind(f"<{tag}>", 0, end) if end >= 0 else -1
        if start >= 0 and (asked := text[start + len(tag) + 2 : end].strip()):
            break
    left = asked or text.strip()
    for _ in range(_MOST_WRAPPERS):
        first, last = _WRAPPED_AT_START.match(left), _WRAPPED_AT_END.search(left[-_LONGEST_TAG:])
        if first is not None and (end := left.find(f"</{first[1]}>")) >= 0:
            left = left[end + len(first[1]) + 3 :].lstrip()
        elif last is not None and (at := left.rfind(f"<{last[1]}")) >= 0:
            left = left[:at].rstrip()
        else:
            break
    if not left or (asked is None and len(left) == len(text.strip())):
        return text
    return left


def _only_text(messages: Sequence[Message], role: str) -> str | None:
    """Returns the text of a list that is one message of this role with one text part, as most are; else ``None``."""
    if len(messages) != 1 or messages[0].role != role or len(messages[0].parts) != 1:
        return None
    part = messages[0].parts[0]
    if type(part) is Text:
        return part.text
    return None


def _worded(parts: Sequence[Part]) -> Said:
    if len(parts) == 1 and type(parts[0]) is Text:
        return Said(parts[0].text)
    text = "\n".join(part.text for part in parts if type(part) is Text and part.text)
    kinds = {type(part) for part in parts}
    if text or kinds <= {Text} or kinds == {Text, Reasoning}:
        return Said(text)
    if any(type(part) is Media for part in parts):
        return Said(None, media_only=True)
    return NOTHING


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
    """Returns the last text in a span's output, unless a tool call is pending after it."""
    if output is None:
        return NOTHING
    if not output:
        return Said("")
    if (text := _only_text(output, "assistant")) is not None:
        return Said(text)
    served = silent = False
    for message in reversed(output):
        served = served or bool(message.tool_responses)
        if message.role not in ("assistant", ""):
            continue
        said = _answer_in(message, served)
        if said is None:
            return NOTHING
        if said.text or said.pending or said.media_only or message.hidden:
            return said
        silent = silent or said.text == ""
    if silent:
        return Said("")
    return NOTHING


def _answer_in(message: Message, served: bool) -> Said | None:
    """Returns the answer in an assistant's message; ``None`` where the provider's tools ran, and the words about their
    results were not captured. ``served``: results follow the message."""
    requests = message.tool_requests
    if not requests:
        return _worded(message.parts)
    for request in requests:
        if request.name and not asks_for_tool(request):
            return Said(_handed_over(request.arguments))
    if not served and not all(request.hosted for request in requests):
        return Said(pending=True)
    parts = _beside_tools(message.parts)
    if parts:
        return _worded(parts)
    return None


def _handed_over(arguments: Any) -> str | None:
    """Returns an answer that is a tool's arguments: the only argument, or all of them as JSON."""
    if isinstance(arguments, dict) and len(arguments) == 1:
        arguments = next(iter(arguments.values()))
    if arguments is None or isinstance(arguments, str):
        return arguments
    return as_text(arguments)


def _beside_tools(parts: Sequence[Part]) -> list[Part]:
    """Returns the parts after the last tool part, where one message holds a whole run in order; else all other parts,
    since some instrumentations put the answer first."""
    others: list[Part] = []
    after: list[Part] = []
    for part in parts:
        if type(part) in _TOOL_PARTS:
            after = []
        else:
            others.append(part)
            after.append(part)
    return after or others

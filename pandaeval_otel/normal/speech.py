"""Reads message lists: turn starts, questions and answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._tool_values import answer_in_arguments, is_final_answer, may_be_final_answer
from pandaeval_otel.model import Media, Message, Part, Reasoning, Span, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.message import all_parts
from pandaeval_otel.normal.framework_text import is_harness, is_replay, user_text

_TOOL_PARTS = (ToolRequest, ToolResponse)
_ENDED = frozenset({"stop", "end_turn", "completed"})
"""Finish reasons of regular ends, in lower case."""
_RECEIPTS = ("Returning structured response", "Final result processed")
"""First words of responses to answer-only tools, of LangChain and Pydantic AI."""
_HANDS_OVER = "final_answer"
_SPEECH_ARGUMENTS = frozenset({"message", "inner_thoughts", "thinking", "request_heartbeat"})
"""Arguments of Letta's ``send_message``, by which its agents speak."""
_LONG_RESULT = 4000
"""Below this length in characters of a cut result, the list may have been cut anywhere."""


@dataclass(slots=True, unsafe_hash=True)  # never changed
class ExchangeSide:
    """A side of an exchange.

    ``text``: ``None`` if not captured, ``""`` if empty. ``pending``: an unanswered tool call.
    """

    text: str | None = None
    media_only: bool = False
    pending: bool = False


NOTHING = ExchangeSide()


def is_user_turn(message: Message) -> bool:
    """Return whether a user message has text or media, and is no tool result or replay."""
    parts = message.parts
    if message.role != "user" or not parts:
        return False
    for part in parts:
        if type(part) is ToolResponse:
            return False
    first = parts[0]
    if type(first) is not Text:
        return True
    return not (is_replay(first.text) or all(map(is_harness, parts)))


def is_cut(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[-1].role != "user" and messages[-1].hidden


def current_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the last user message; empty for a cut list."""
    if not messages or is_cut(messages):
        return ()
    for index in range(len(messages) - 1, -1, -1):
        if is_user_turn(messages[index]):
            return messages[index + 1 :]
    return messages


def previous_turn(messages: Sequence[Message]) -> Sequence[Message]:
    at = len(messages) - len(current_turn(messages))
    while at and (is_user_turn(messages[at - 1]) or messages[at - 1].role == "system"):
        at -= 1
    return current_turn(messages[:at])


def tool_requests(messages: Iterable[Message]) -> list[ToolRequest]:
    found: list[ToolRequest] = []
    for message in messages:
        for part in message.parts:
            if type(part) is ToolRequest and is_real_tool_call(part):
                found.append(part)  # noqa: PERF401 - few items; a comprehension would add a frame
    return found


def is_real_tool_call(request: ToolRequest) -> bool:
    """Return whether a request calls a tool. Answer-only tools and unnamed calls do not count."""
    name = request.name
    return bool(name) and not (may_be_final_answer(name) and is_final_answer(name, request.arguments))


def normalize_answer_calls(output: tuple[Message, ...]) -> tuple[Message, ...]:
    """Rename calls of answer-only tools to a common name and drop their responses."""
    if len(output) == 1 and output[0].role == "assistant":
        return output
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
    answer_part = Text(text) if answer is None else ToolRequest(_HANDS_OVER, answer.arguments, answer.id)
    return (*[message for message in kept if message.parts], Message("assistant", (answer_part,)))


def as_answer(output: Sequence[Message]) -> tuple[Message, ...]:
    *before, last = output
    if len(last.tool_requests) != 1:
        return tuple(output)
    parts = [replace(part, name=_HANDS_OVER) if type(part) is ToolRequest else part for part in last.parts]
    return (*before, last.with_parts(*parts))


def _is_receipt(part: ToolResponse) -> bool:
    return type(part.result) is str and part.result.startswith(_RECEIPTS)


def split_hosted_calls(output: tuple[Message, ...]) -> tuple[Message, ...]:
    """Split answers with hosted calls into messages: text and calls, results, following text."""
    messages: list[Message] = []
    for message in output:
        parts = _of_provider(message)
        messages += _spread(message, parts) if parts else (message,)
    if len(messages) == len(output):
        return output
    return tuple(messages)


def _of_provider(message: Message) -> tuple[Part, ...]:
    """Return the parts of an answer with hosted calls, else ``()``.

    If an answer ends regularly with text after its calls, the provider ran them.
    """
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
    row: list[Part] = []
    for part in parts:
        is_result, before = type(part) is ToolResponse, type(row[-1]) if row else None
        if (row and is_result != (before is ToolResponse)) or (before is ToolRequest and type(part) is not ToolRequest):
            yield Message("tool" if before is ToolResponse else message.role, tuple(row))
            row = []
        row.append(part)
    yield Message("tool" if type(row[-1]) is ToolResponse else message.role, tuple(row), message.finish_reason)


def user_messages(messages: Sequence[Message]) -> list[str]:
    return [
        "\n".join(part.text for part in _own_words(group) if type(part) is Text and part.text)
        for group in _user_groups(messages)
    ]


def _own_words(group: Sequence[Message]) -> list[Part]:
    parts = all_parts(group)
    return [part for part in parts if not is_harness(part)] or parts


def by_user_message(calls: Sequence[Span]) -> list[list[Span]]:
    """Group model calls by answered user message. A different prompt (router, summary) stays in its turn."""
    groups: list[list[Span]] = []
    heard: list[str] = []
    for call in calls:
        words = user_messages(call.input or ())
        begins = words != heard and bool(heard) and heard[-1] in words[:-1]
        if call.previous_response_id:  # the server keeps the history: the input holds only new messages
            begins = bool(words)
        if begins or not groups:
            groups.append([call])
            heard = words
        else:
            groups[-1].append(call)
            heard = heard or words
    return groups


def question_of(span: Span) -> ExchangeSide:
    if span.input is None or (is_cut(span.input) and not _is_unanswered(span.input)):
        return NOTHING
    if not span.input:
        return ExchangeSide("")
    if (text := _only_text(span.input, "user")) is not None and not is_replay(text):
        return ExchangeSide(user_text(text))
    group = next(_user_groups(span.input[::-1]), None)
    if group is None:
        return NOTHING
    # If the last message of a long conversation was cut, later messages can be missing.
    if (
        group[0].hidden
        and group[0] is span.input[-1]
        and any(message.role != "system" and message not in group for message in span.input)
    ):
        return NOTHING
    question = _worded(_own_words(group[::-1]))
    if question.text is None:
        return question
    return ExchangeSide(user_text(question.text), question.media_only)


def _is_unanswered(messages: Sequence[Message]) -> bool:
    last = messages[-1].parts[0] if messages[-1].parts else None
    size = len(last.result) if type(last) is ToolResponse and type(last.result) is str else 0
    before = sum(len(part.text) for message in messages for part in message.parts if type(part) is Text)
    if size < max(_LONG_RESULT, before) or len([*_user_groups(messages)]) != 1:
        return False
    return not any(message.role == "assistant" and message.text for message in messages)


def _only_text(messages: Sequence[Message], role: str) -> str | None:
    if len(messages) != 1 or messages[0].role != role or len(messages[0].parts) != 1:
        return None
    part = messages[0].parts[0]
    if type(part) is Text:
        return part.text
    return None


def _worded(parts: Sequence[Part]) -> ExchangeSide:
    if len(parts) == 1 and type(parts[0]) is Text:
        return ExchangeSide(parts[0].text)
    texts = [part.text for part in parts if type(part) is Text and part.text]
    text = texts[-1] if is_whole(texts) else "\n".join(texts)
    kinds = {type(part) for part in parts}
    if text or kinds <= {Text} or kinds == {Text, Reasoning}:
        return ExchangeSide(text)
    if any(type(part) is Media for part in parts):
        return ExchangeSide(None, media_only=True)
    return NOTHING


def is_whole(texts: Sequence[str]) -> bool:
    """Return whether the last text repeats the earlier ones, which are chunks of a streamed answer."""
    return len(texts) > 2 and texts[-1] == "".join(texts[:-1])


def _is_aside(message: Message) -> bool:
    return message.role == "user" and all(map(is_harness, message.parts))


def _user_groups(messages: Sequence[Message]) -> Iterator[list[Message]]:
    group: list[Message] = []
    for message in messages:
        if is_user_turn(message):
            group.append(message)
        elif group and not (message.role == "system" or _is_aside(message)):
            yield group
            group = []
    if group:
        yield group


def answer_of(output: Sequence[Message] | None) -> ExchangeSide:
    """Return the last text in a span's output, unless a tool call is pending."""
    if output is None:
        return NOTHING
    if not output:
        return ExchangeSide("")
    if (text := _only_text(output, "assistant")) is not None:
        return ExchangeSide(text)
    served = silent = False
    for message in reversed(output):
        served = served or bool(message.tool_responses)
        if message.role not in ("assistant", ""):
            continue
        answer = _answer_in(message, served)
        if answer is None:
            return NOTHING
        if answer.text or answer.pending or answer.media_only or message.hidden:
            return answer
        silent = silent or answer.text == ""
    if silent:
        return ExchangeSide("")
    return NOTHING


def _answer_in(message: Message, served: bool) -> ExchangeSide | None:
    requests = message.tool_requests
    if not requests:
        return _worded(message.parts)
    for request in requests:
        if request.name and (not is_real_tool_call(request) or _is_for_user(request)):
            return ExchangeSide(_handed_over(request.arguments))
    if not served and not all(request.hosted for request in requests):
        return ExchangeSide(pending=True)
    parts = _beside_tools(message.parts)
    if parts:
        return _worded(parts)
    return None


def _is_for_user(request: ToolRequest) -> bool:
    """Return whether the call is a message without a recipient: it is for the user."""
    given = request.arguments
    return (
        request.name == "send_message"
        and isinstance(given, dict)
        and "message" in given
        and given.keys() <= _SPEECH_ARGUMENTS
    )


def _handed_over(arguments: Any) -> str | None:
    if isinstance(arguments, dict):
        arguments = answer_in_arguments(arguments) or arguments
    if isinstance(arguments, dict) and len(arguments) == 1:
        arguments = next(iter(arguments.values()))
    if arguments is None or isinstance(arguments, str):
        return arguments
    return as_text(arguments)


def _beside_tools(parts: Sequence[Part]) -> list[Part]:
    others: list[Part] = []
    after: list[Part] = []
    for part in parts:
        if type(part) in _TOOL_PARTS:
            after = []
        else:
            others.append(part)
            after.append(part)
    return after or others

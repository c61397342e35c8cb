"""Reads a run's question and answer from a function's arguments and return value.

Finds text under the names that frameworks use. Values without messages or such a name are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pandaeval_otel.base._json import as_text
from pandaeval_otel.dialects._common import put_input, put_output
from pandaeval_otel.dialects._message_edits import Messages, has_content
from pandaeval_otel.dialects._messages import MaybeCut, messages_of, read_messages
from pandaeval_otel.dialects._prompted import without_protocol
from pandaeval_otel.dialects._reading import Reading
from pandaeval_otel.dialects._reprs import from_repr, is_object_text
from pandaeval_otel.dialects._values import Object, hidden, parsed, salvage, starts_like_json
from pandaeval_otel.model import NOT_CAPTURED, Kind, Message, Part, Text, ToolRequest, ToolResponse
from pandaeval_otel.model.message import all_parts

_Side = tuple[str, tuple[str, ...]]
"""The speaker's role, and the names under which their words are found, best first."""
_QUESTION = (
    "user",
    (
        *(
            "messages",
            "input_messages",
            "user_input",
            "user_message",
            "user_prompt",
            "user_msg",
            "user_query",
            "query",
            "question",
        ),
        *("new_message", "message", "task", "prompt", "request", "instruction", "input", "inputs", "input_args"),
        *("text", "content", "contents", "goal", "topic", "description", "state", "data"),
    ),
)
_ANSWER = (
    "assistant",
    (
        *("raw", "messages", "output_messages", "final_output", "final_answer", "answer", "output", "outputs"),
        *("response", "result", "reply", "replies", "completion", "return_values", "last_message", "message"),
        *("generation", "output_text", "text", "content", "update", "data", "summary"),
    ),
)
_STRUCTURED = "structured_response"
"""Where LangChain's agents put an answer with a schema, beside the messages."""
_BODIES = ("choices", "candidates", "generations")
_MESSAGE_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat"})
_ITEM_TYPES = frozenset({"message", "reasoning", "function_call", "function_call_output"})
_BLOCK_TYPES = frozenset({"text", "output_text", "input_text", "tool_use", "tool_call", "tool_result", "thinking"})
_FAILURE = frozenset({"error_code", "error_message"})
_SPEAKERS = _MESSAGE_TYPES | {"user", "assistant"}
_ANSWER_WRAPPER = frozenset({"response"})
"""The parameter of an output tool for answers that are no objects (Pydantic AI)."""
_NOTHING = frozenset({"", "None", "null"})
_MAX_NESTING = 8
_MAX_FIELDS = 12
"""Most members of an object of plain values that counts as the question or the answer itself."""
_MAX_OBJECT = 20_000
"""Most characters of such an object. A longer object is some framework's state."""
_MAX_NODES = 2000
"""Most values examined in one input, which may hold a framework's whole state."""


def asked(value: Any) -> MaybeCut:
    """Return the messages in a run's input (or ``None``), and whether it was cut."""
    return _said(value, _QUESTION)


def answered(value: Any) -> MaybeCut:
    """Return the messages in a run's output, and whether it was cut.

    Several cut messages give ``None``. A whole conversation gives the messages after its last question.
    """
    messages, cut = _said(value, _ANSWER)
    question = 0
    for index, message in enumerate((messages or ())[:-1], 1):
        if message.role == "user" and message.text:
            question = index
    return messages and messages[question:], cut


def model_input(value: Any) -> MaybeCut:
    """Return a model's input, and whether it was cut. A cut conversation keeps its beginning."""
    return _to_or_from_model(value, _QUESTION)


def model_output(value: Any) -> MaybeCut:
    return _to_or_from_model(value, _ANSWER)


def read_sides(reading: Reading, given: Any, made: Any) -> None:
    """Set input and output of a model call or run, with a note if either was cut."""
    if reading.kind is not Kind.LLM:
        put_input(reading, asked(given))
        put_output(reading, answered(made))
        return
    put_input(reading, model_input(given))
    put_output(reading, model_output(made))
    reading.output = without_protocol(reading.output)


def _to_or_from_model(value: Any, side: _Side) -> MaybeCut:
    value = _structure(value)
    if type(value) is str and starts_like_json(value):
        return read_messages(value, side[0])
    return _said(value, side)


def _structure(value: Any) -> Any:
    value = parsed(value)
    return (type(value) is str and value.startswith("[") and from_repr(value)) or value


def _said(value: Any, side: _Side) -> MaybeCut:
    value = _structure(value)
    if hidden(value):
        return None, False
    if value == "":
        return (), False
    if type(value) is str and starts_like_json(value):
        return _beginning(value, side), True
    messages = _Finder(side).find(value, True, 0)
    return messages if messages and has_content(messages) else None, False


def _beginning(text: str, side: _Side) -> Messages | None:
    messages = _Finder(side).find(salvage(text), True, 0)
    if not messages or len(messages) > 1 or messages[0].role != side[0] or not has_content(messages):
        return None
    return (messages[0].with_parts(*messages[0].parts, NOT_CAPTURED),)


def _is_echo(messages: Messages) -> bool:
    """Return whether an output only repeats what the agent was given."""
    return all(message.role in ("user", "system") for message in messages)


class _Finder:
    def __init__(self, side: _Side) -> None:
        self._role, self._names = side
        self._left = _MAX_NODES

    def find(self, value: Any, loose: bool, nesting: int) -> Messages | None:
        self._left -= 1
        if nesting > _MAX_NESTING or self._left < 0:
            return None
        if type(value) is str:
            return self._text(value, loose, nesting)
        if type(value) is dict:
            return self._dict(value, loose, nesting)
        if isinstance(value, (list, tuple)):
            return self._list(value, loose, nesting)
        if isinstance(value, (int, float)) and loose and nesting:
            return self._message(json.dumps(value))
        return None

    def _message(self, text: str) -> Messages:
        return (Message(self._role, (Text(text.removesuffix("\n")),)),)

    def _text(self, text: str, loose: bool, nesting: int) -> Messages | None:
        if hidden(text) or text in _NOTHING:
            return None
        structure = from_repr(text)
        if structure is None and is_object_text(text):
            return None
        inner = parsed(text) if structure is None else structure
        if type(inner) is str:
            return self._message(text)
        return self.find(inner, loose, nesting + 1)

    def _dict(self, item: Object, loose: bool, nesting: int) -> Messages | None:
        if _is_message(item) or any(isinstance(item.get(key), list) for key in _BODIES):
            return messages_of(_with_role(item), self._role)
        if isinstance(item.get("args"), (list, tuple)) and type(item.get("kwargs", {})) is dict:
            return self._call(item["args"], item.get("kwargs") or {}, nesting)
        messages = self._named(item, nesting)
        handed_over = item.get(_STRUCTURED) if self._role == "assistant" else None
        if handed_over is not None:
            return with_answer(messages or (), handed_over if type(handed_over) is str else as_text(handed_over))
        if messages:
            return messages
        if len(item) == 1:
            return self.find(next(iter(item.values())), loose, nesting + 1)
        for member in item.values():  # components by name, each with arguments or results of its own
            if type(member) is dict and (messages := self._named(member, nesting + 1)):
                return messages
        if loose and 0 < len(item) <= _MAX_FIELDS:
            return self._as_it_stands(item)
        return None

    def _as_it_stands(self, item: Object) -> Messages | None:
        if item.keys() >= _FAILURE:
            return None
        texts = [member for member in item.values() if not (member is None or isinstance(member, (int, float)))]
        if self._role == "user" and any(type(text) is not str or is_object_text(text) for text in texts):
            return None
        text = as_text(item)
        if len(text) <= _MAX_OBJECT:
            return self._message(text)
        return None

    def _named(self, item: Object, nesting: int) -> Messages | None:
        first: Messages | None = None
        for key in self._names:
            messages = self.find(item[key], True, nesting + 1) if item.get(key) is not None else None
            if messages and (self._role == "user" or not _is_echo(messages)):
                return messages
            first = first or messages
        return first

    def _call(self, args: Sequence[Any], kwargs: Object, nesting: int) -> Messages | None:
        if messages := self._named(kwargs, nesting):
            return messages
        for text in args:
            if type(text) is str and " " in text.strip() and not is_object_text(text):
                return self._text(text, True, nesting + 1)
        for argument in args:
            if not isinstance(argument, (int, float)) and (messages := self.find(argument, True, nesting + 1)):
                return messages
        if kwargs:
            return self.find(kwargs, True, nesting + 1)
        return None

    def _list(self, items: Sequence[Any], loose: bool, nesting: int) -> Messages | None:
        if items and all(type(item) is dict and _is_message(item) for item in items):
            return messages_of([_with_role(item) for item in items], self._role)
        if len(items) == 2 and type(items[0]) is str and items[0] in _SPEAKERS:
            return messages_of(list(items), self._role)
        messages: list[Message] = []
        for item in items:
            if self._left < 0:
                return None
            messages += self.find(item, loose, nesting + 1) or ()
        is_one_speaker = len({message.role for message in messages}) == 1 and all(type(item) is str for item in items)
        if len(messages) > 1 and is_one_speaker:  # joins several strings into one message
            return (Message(messages[0].role, tuple(all_parts(messages))),)
        return tuple(messages) or None


def _is_message(item: Object) -> bool:
    kind = item.get("type")
    if type(kind) is str:
        if kind in _ITEM_TYPES or kind in _BLOCK_TYPES:
            return True
        word = kind.lower().removesuffix("chunk").removesuffix("message")
        if word in _MESSAGE_TYPES and ("content" in item or "data" in item):
            return True
    if type(item.get("role")) is str:
        return "content" in item or "parts" in item or "tool_calls" in item or "blocks" in item
    if "tool_calls" in item and "response" not in item:  # beside a response: what LlamaIndex's agents give back
        return True
    return ("lc" in item and "kwargs" in item) or ("source" in item and "content" in item)


def _with_role(item: Object) -> Object:
    if "role" in item or "source" not in item:
        return item
    return {**item, "role": "user" if item["source"] == "user" else "assistant"}


def split_run(messages: Messages, earlier: int = 0) -> tuple[Messages, Messages]:
    """Split ``messages`` after this run's question.

    ``earlier``: the number of requests and responses of previous runs. If 0, the last user message is the question.
    """
    begin = _begin(messages, earlier) if earlier > 0 else None
    split = 0
    if begin is None:
        for index, message in enumerate(messages, 1):
            if message.role == "user" and not message.tool_responses:
                split = index
    else:
        answers = (i for i in range(begin, len(messages)) if messages[i].role == "assistant")
        split = next(answers, len(messages))
    return messages[:split], messages[split:]


def _begin(messages: Messages, earlier: int) -> int | None:
    passed = 0
    for index, message in enumerate(messages):
        if message.role == "assistant" or index == 0 or messages[index - 1].role == "assistant":
            if passed == earlier:
                return index
            passed += 1
    return None


def with_answer(made: Messages, answer: str) -> Messages:
    texts = [message.text for message in made if message.role == "assistant" and message.text]
    if texts and (texts[-1] == answer or parsed(texts[-1]) == parsed(answer)):
        return made
    return (*made, Message("assistant", (Text(answer),)))


def without_carriers(messages: Messages, carries: Callable[[str], bool]) -> Messages:
    """Replace calls of answer-only tools (``carries``) by their text, and drop their responses."""
    if not any(carries(request.name) for message in messages for request in message.tool_requests):
        return messages
    carried: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolRequest) and carries(part.name):
                carried.add(part.id)
                parts.append(_carried(part.arguments))
            elif not (isinstance(part, ToolResponse) and (carries(part.name) or (part.id and part.id in carried))):
                parts.append(part)
        if parts or not message.parts:
            kept.append(message.with_parts(*parts))
    return tuple(kept)


def _carried(arguments: Any) -> Part:
    if type(arguments) is dict and arguments.keys() == _ANSWER_WRAPPER:
        arguments = arguments["response"]
    if arguments is None:
        return NOT_CAPTURED
    return Text(arguments if type(arguments) is str else as_text(arguments))

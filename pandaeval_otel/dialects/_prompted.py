"""Reads agents that write thoughts, calls and answers as text: DSPy (``[[ ## next_thought ## ]]``) and smolagents'
CodeAgent (``Thought: …``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pandaeval_otel.dialects._message_edits import Messages
from pandaeval_otel.dialects._messages import ROLES
from pandaeval_otel.dialects._parts import result_value
from pandaeval_otel.dialects._tool_values import is_final_answer
from pandaeval_otel.dialects._values import identifier, parsed
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolDefinition, ToolRequest, ToolResponse

_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
_DSPY = "[[ ## "
_THOUGHTS = frozenset({"next_thought", "reasoning", "rationale", "thought"})
_TOOL, _ARGUMENTS = "next_tool_name", "next_tool_args"
_SEEN, _ORDER = "observation_", "\n\nRespond with the corresponding output fields"
_KNOWN = _THOUGHTS | {_TOOL, _ARGUMENTS, "completed"}
_DSPY_TOOL = re.compile(r"\(\d{1,4}\) (\w{1,200}), whose description is <desc>")
_DSPY_ARGUMENTS = re.compile(r"</desc>\. It takes arguments (\{.*\})\.$", re.MULTILINE)
_THOUGHT = re.compile(r"\s*+Thoughts?:")
_CODE = ("<code>", "```")
_TASK = "New task:\n"
_SPEAKER = re.compile(
    r"^(?:#{2,4} ?)?(?P<line>system|human|user|assistant|ai): ?"
    r"|(?:<\|(?:im_start|begin_of_text)\|>|<s>)?(?:(?:(?<=<\|im_start\|>)|<start_of_turn>)(?P<tag>\w+)(?:\n|\Z)"
    r"|<\|start_header_id\|>(?P<header>\w+)<\|end_header_id\|>\s*|<\|(?P<mark>system|user|assistant)\|>\s*"
    r"|(?P<turn>\[/?INST\]|<</?SYS>>))",
    re.MULTILINE | re.IGNORECASE,
)
"""Matches a speaker in a prompt: a name at the start of a line, or a mark of ChatML, Llama, Gemma, Phi or Mistral."""
_TURNS = {"[inst]": "user", "[/inst]": "assistant", "<<sys>>": "system", "<</sys>>": "user"}
_CLOSERS = re.compile(r"<\|(?:im_end|eot_id|end_of_text|end)\|>\s*|<end_of_turn>\s*|</?s>")
_MAX_TOOLS_TEXT = 100_000
_MAX_DESCRIPTION = 10_000


def without_protocol(output: Messages | None) -> Messages | None:
    if not output or len(output) != 1 or len(output[0].parts) != 1 or type(output[0].parts[0]) is not Text:
        return output
    text = output[0].parts[0].text
    parts = _dspy_parts(text) if _DSPY in text else _code_parts(text)
    if parts is None:
        return output
    return (output[0].with_parts(*parts),)


def without_task_mark(given: Messages | None) -> Messages | None:
    for index, message in enumerate(given or ()):
        if given is None or message.role != "user":
            continue
        first, *rest = message.parts or (NOT_CAPTURED,)
        if type(first) is not Text or not first.text.startswith(_TASK):
            return given
        words = Message("user", (Text(first.text.removeprefix(_TASK)), *rest))
        return (*given[:index], words, *given[index + 1 :])
    return given


def without_fields(given: Messages | None) -> Messages | None:
    """Reduce each of a user's prompts in DSPy's fields to the first field, the question, and the calls so far."""
    found: list[Message] = []
    for message in given or ():
        pieces = _FIELD.split(message.text)
        is_prompt = message.role == "user" and not pieces[0] and len(pieces) > 2
        found += _asked_so_far(message, pieces) if is_prompt else [message]
    return given and tuple(found)


def _asked_so_far(prompt: Message, pieces: Sequence[str]) -> Iterator[Message]:
    yield prompt.with_parts(Text(pieces[2].strip()))
    fields = dict(zip(pieces[1::2], pieces[2::2], strict=False))
    for name, value in fields.items():
        step = name.removeprefix(_SEEN)
        tool, arguments = (
            fields.get(f"tool_name_{step}", "").strip(),
            parsed(fields.get(f"tool_args_{step}", "").strip()),
        )
        if step != name and tool and not is_final_answer(tool, arguments):
            result = value.partition(_ORDER)[0].strip()
            yield Message("assistant", (ToolRequest(tool, arguments),))
            yield Message("tool", (ToolResponse(result_value(result), name=tool),))


def prompted_tools(system: str | None) -> tuple[ToolDefinition, ...] | None:
    if not system or "whose description is <desc>" not in system or len(system) > _MAX_TOOLS_TEXT:
        return None
    tools = []
    for match in _DSPY_TOOL.finditer(system):
        name, start = match[1], match.end()
        end = system.find("</desc>", start, start + _MAX_DESCRIPTION)
        if end < 0 or is_final_answer(name, None):
            continue
        arguments = _DSPY_ARGUMENTS.match(system, end)
        properties = arguments and parsed(arguments[1])
        schema = {"type": "object", "properties": properties} if type(properties) is dict else None
        tools.append(ToolDefinition(name, " ".join(system[start:end].split()), schema))
    return tuple(tools) or None


def _dspy_parts(text: str) -> list[Part] | None:
    pieces = _FIELD.split(text)
    fields = {name: value.strip() for name, value in zip(pieces[1::2], pieces[2::2], strict=False)}
    parts: list[Part] = [Reasoning(value) for name, value in fields.items() if name in _THOUGHTS and value]
    tool, arguments = identifier(fields.get(_TOOL)), parsed(fields.get(_ARGUMENTS))
    if tool and not is_final_answer(tool, arguments):
        parts.append(ToolRequest(tool, arguments))
    answer = "\n".join(value for name, value in fields.items() if name not in _KNOWN and value)
    if answer:
        parts.append(Text(answer))
    if fields:
        return parts
    return None


def _code_parts(text: str) -> list[Part] | None:
    match = _THOUGHT.match(text)
    places = [at for at in map(text.find, _CODE) if at >= 0]
    if match is None or not places:
        return None
    thought, code = text[match.end() : min(places)].strip(), text[min(places) :].strip()
    if thought:
        return [Reasoning(thought), Text(code)]
    return None


def split_prompt(messages: Messages | None) -> Messages | None:
    """Split a single text into messages by its speaker names. Other messages are unchanged."""
    if not messages or len(messages) != 1 or len(messages[0].parts) != 1:
        return messages
    part = messages[0].parts[0]
    if type(part) is not Text:
        return messages
    prompt = part.text.strip()
    if _SPEAKER.match(prompt) is None:
        return messages
    marks = [*_SPEAKER.finditer(prompt)]
    ends = [*[mark.start() for mark in marks[1:]], len(prompt)]
    found: list[Message] = []
    speakers: set[str] = set()
    for mark, end in zip(marks, ends, strict=True):
        word = next(filter(None, mark.groups())).lower()
        role = _TURNS.get(word) or ROLES.get(word, "")
        text = _CLOSERS.sub("", prompt[mark.end() : end]).strip()
        if not role or (not text and role != "assistant" and word not in _TURNS):
            return messages
        speakers.add(role)
        if text:
            found.append(Message(role, (Text(text),)))
    is_prompt = len(speakers) > 1 and bool(found) and found[-1].role == "user"
    return tuple(found) if is_prompt else messages

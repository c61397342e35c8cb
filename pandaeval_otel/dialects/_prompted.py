"""Reads thoughts, tools and answers of agents that write them as plain text in a format that the prompt prescribes.

DSPy: ``[[ ## next_thought ## ]]`` … ``[[ ## completed ## ]]``. smolagents' CodeAgent: ``Thought: …`` before the code.
"""

from __future__ import annotations

import re

from pandaeval_otel.dialects._messages import Messages
from pandaeval_otel.dialects._tool_values import is_final_answer
from pandaeval_otel.dialects._values import identifier, parsed
from pandaeval_otel.model import Message, Part, Reasoning, Text, ToolDefinition, ToolRequest

_FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
_DSPY = "[[ ## "
_THOUGHTS = frozenset({"next_thought", "reasoning", "rationale", "thought"})
_TOOL, _ARGUMENTS = "next_tool_name", "next_tool_args"
_DSPY_TOOL = re.compile(r"\(\d{1,4}\) (\w{1,200}), whose description is <desc>")
_DSPY_ARGUMENTS = re.compile(r"</desc>\. It takes arguments (\{.*\})\.$", re.MULTILINE)
_THOUGHT = re.compile(r"\s*+Thoughts?:")
_CODE = ("<code>", "```")
_TASK = "New task:\n"
_MAX_TOOLS_TEXT = 100_000
_MAX_DESCRIPTION = 10_000


def without_protocol(output: Messages | None) -> Messages | None:
    """Returns ``output`` without what a prompted protocol puts around thoughts, tool calls and answers."""
    if not output or len(output) != 1:
        return output
    only = output[0]
    if len(only.parts) != 1 or type(only.parts[0]) is not Text:
        return output
    parts = _parts(only.parts[0].text)
    return output if parts is None else (Message(only.role, parts, only.finish_reason),)


def without_task_mark(given: Messages | None) -> Messages | None:
    """Returns ``given`` without the words that smolagents put before the user's own."""
    for index, message in enumerate(given or ()):
        if message.role == "user" and given is not None:
            first = message.parts[0] if message.parts else None
            if type(first) is not Text or not first.text.startswith(_TASK):
                return given
            parts = (Text(first.text[len(_TASK) :]), *message.parts[1:])
            return (*given[:index], Message("user", parts), *given[index + 1 :])
    return given


def prompted_tools(system: str | None) -> tuple[ToolDefinition, ...] | None:
    """Returns the tools that DSPy's ReAct lists in its instructions, or ``None``."""
    if not system or "whose description is <desc>" not in system or len(system) > _MAX_TOOLS_TEXT:
        return None
    found = []
    for match in _DSPY_TOOL.finditer(system):
        name, start = match[1], match.end()
        end = system.find("</desc>", start, start + _MAX_DESCRIPTION)
        if end < 0 or is_final_answer(name, None):
            continue
        said = _DSPY_ARGUMENTS.match(system, end)
        properties = parsed(said[1]) if said else None
        schema = {"type": "object", "properties": properties} if type(properties) is dict else None
        found.append(ToolDefinition(name, " ".join(system[start:end].split()), schema))
    return tuple(found) or None


def _parts(text: str) -> tuple[Part, ...] | None:
    if _DSPY in text:
        pieces = _FIELD.split(text)
        fields = {name: value.strip() for name, value in zip(pieces[1::2], pieces[2::2], strict=False)}
        if not fields:
            return None
        parts: list[Part] = [Reasoning(fields[name]) for name in fields if name in _THOUGHTS and fields[name]]
        tool = identifier(fields.get(_TOOL))
        arguments = parsed(fields.get(_ARGUMENTS))
        if tool and not is_final_answer(tool, arguments):
            parts.append(ToolRequest(tool, arguments))
        known = _THOUGHTS | {_TOOL, _ARGUMENTS, "completed"}
        if rest := [text for name, text in fields.items() if name not in known and text]:
            parts.append(Text("\n".join(rest)))
        return tuple(parts)
    match = _THOUGHT.match(text)
    places = [at for mark in _CODE if (at := text.find(mark)) >= 0] if match else []
    if match is None or not places or not text[match.end() : min(places)].strip():
        return None
    return (Reasoning(text[match.end() : min(places)].strip()), Text(text[min(places) :].strip()))

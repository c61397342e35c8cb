"""Arguments and results of tool calls, without what instrumentations and frameworks wrap around them: messages, result
objects and protocol replies, as JSON or as Python's ``repr``.

Only unmistakable wrappers are removed: beside their content they have members that a tool's own answer hardly has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pandaeval_otel.dialects._parts import result_value
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._values import Object, first, hidden, identifier, parsed, salvage, starts_like_json
from pandaeval_otel.model import Captured

FINAL_ANSWERS = frozenset({"final_answer", "final_result", "finalanswertool"})
"""Tools by which frameworks make a model hand over its answer (smolagents, Pydantic AI). No tool is called."""
_FINISH = "finish"
"""DSPy's ReAct ends a run by a tool of this name, without arguments."""

_CALL = frozenset({"args", "kwargs"})
_CALL_NOISE = _CALL | {"sanitize_inputs_outputs", "self", "ctx", "context", "run_context", "tool_context"}
_FUNCTION_RESPONSE = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})
_MCP_CALL = frozenset({"tool_name", "arguments"})
_FAILED = ("error", "failed", "failure")  # compared, not looked up: a status may be anything
_WRAPPERS = ('"lc"', '"type": "tool"', '"type":"tool"', '"output"', '"blocks"', '"ToolMessage"')
_OF_SERVER = "mcp__"
_MOST = 50
"""Most nested wrappers; no message nests more structures."""
_REPR = re.compile(
    r"\s*(?:(?:\[\s*)?[A-Za-z_.]*(?:Message|Output|Result|Response|Content|Return|Block)\("
    r"|(?:content|meta|status|blocks|tool_name|result)=)"
)
_SAYS_FAILED = re.compile(
    r"is_?error\W{1,6}true|\bstatus\W{1,6}(?:error|failed|failure)\b|\btype\W{1,6}error-", re.IGNORECASE
)
_ANSWERS = frozenset({"tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id"})
"""Members by which a message names the call that it answers."""
_FLAGS = frozenset({"isError", "is_error", "structuredContent", "structured_content"})
_BESIDE = (
    _ANSWERS
    | _FLAGS
    | {
        *("content", "type", "_meta", "meta", "status", "id", "name", "tool_name", "toolName", "role"),
        *("artifact", "additional_kwargs", "response_metadata", "annotations"),
    }
)
_TEXTS = frozenset({"text", "input_text", "output_text"})
_BLOCK = frozenset({"type", "text", "annotations", "_meta", "meta"})
"""Members of MCP's text content."""
_WRAPS = frozenset(
    {
        *("kwargs", "type", "update", "tool_output", "raw_output", "blocks", "content", "result", "response", "text"),
        "output",
    }
)
"""Members of which every wrapper has at least one."""
_ERRORS = ("error-text", "error-json")
_VALUES = ("text", "json", "content", *_ERRORS)
"""Types of what stands in the ``output`` of Vercel's results, beside its ``value``."""


@lru_cache(maxsize=1024)
def may_be_final_answer(name: str) -> bool:
    """Returns whether :func:`is_final_answer` may say yes to some call of the tool ``name``."""
    word = name.lower()
    return word == _FINISH or word in FINAL_ANSWERS


def is_final_answer(name: str, value: Any) -> bool:
    """Returns whether the framework ends the run by a call of the tool ``name`` with the arguments in ``value``."""
    word = name.lower()
    if word != _FINISH:
        return word in FINAL_ANSWERS
    arguments = tool_arguments(value)
    return arguments is None or not arguments.value


def tool_of_server(name: str) -> str:
    """Returns the own name of an MCP server's tool, which Claude calls ``mcp__SERVER__TOOL``; other names as they are.
    Claude Code's own spans state the tool's own name, so that both ways of recording agree."""
    if not name.startswith(_OF_SERVER):
        return name
    return name.removeprefix(_OF_SERVER).partition("__")[2] or name


def tool_arguments(value: Any, schema: Any = None) -> Captured | None:
    """Returns a tool's arguments; ``None`` when they were not captured or were cut in two.

    ``schema`` (JSON schema, or parameters by name; JSON text too) gives positional arguments their names.
    """
    if hidden(value) or value == "":
        return None
    found = parsed(value)
    if type(found) is str:
        return None if starts_like_json(found) else Captured(found)
    if type(found) is not dict:
        return Captured(found)
    keys = found.keys()
    if "input_str" in keys or ("inputs" in keys and {"tags", "metadata"} <= keys):
        inner = found.get("inputs") if type(found.get("inputs")) is dict else None
        return Captured(inner or parsed(found.get("input_str")))
    if keys == _MCP_CALL:
        return Captured(found["arguments"])
    if not keys & _CALL or keys - _CALL_NOISE:
        return Captured(found)
    named = parsed(found.get("kwargs")) or {}
    positional = parsed(found.get("args")) or ()
    if not isinstance(positional, (list, tuple)) or type(named) is not dict:
        return Captured(found)
    if len(positional) == 1 and type(positional[0]) is dict and not named:
        return Captured(positional[0])
    schema = parsed(schema)
    parameters = schema.get("properties", schema) if type(schema) is dict else {}
    names = list(parameters) if type(parameters) is dict else []
    return Captured({(names[i] if i < len(names) else f"arg{i}"): value for i, value in enumerate(positional)} | named)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool's result. ``failed``: the result itself says so; ``call_id``, ``name``: those that it names."""

    result: Captured | None = None
    call_id: str = ""
    name: str = ""
    failed: bool = False


def tool_outcome(value: Any, wrapped: bool = False) -> Outcome:
    """Returns the result in ``value``; for text that was cut short, what is left of it. ``wrapped``: the
    instrumentation is known to write ``{"output": …}`` around every result."""
    if hidden(value):
        return Outcome()
    found = _structure(value)
    if wrapped and type(found) is dict and found.keys() == {"output"}:
        found = _structure(found["output"])
    call_id = name = ""
    failed = type(found) is dict and (found.get("isError") is True or found.get("is_error") is True)
    for shown, says_failed, wrapper in _unwrappings(found):
        inner = next((wrapper[key] for key in ("kwargs", "data") if type(wrapper.get(key)) is dict), wrapper)
        call_id = call_id or identifier(inner.get("id" if "response" in inner else "tool_call_id"))
        name = name or identifier(first(inner, ("name", "tool_name")))
        found, failed = shown, failed or says_failed
    return Outcome(Captured(result_value(found)), call_id, name, failed)


def unwrapped(value: Any) -> tuple[Any, bool]:
    """Returns the result inside ``value``, and whether a wrapper says that the tool failed. Never raises; unwrapping
    twice changes nothing."""
    failed = False
    for shown, says_failed, _ in _unwrappings(value):
        value, failed = shown, failed or says_failed
    return value, failed


def _unwrappings(value: Any) -> Iterator[tuple[Any, bool, Object]]:
    """Yields the content of each wrapper, from the outermost on, whether the wrapper says "failed", and the wrapper
    where it is an object."""
    for _ in range(_MOST):
        inner = _inner(value)
        if inner is None:
            return
        wrapper = value if type(value) is dict else {}
        value = result_value(inner[0])
        yield value, inner[1], wrapper


def _structure(value: Any) -> Any:
    """Returns the structure in ``value``: of text, an object's repr, or what is left of a cut message or envelope
    around the result."""
    found = parsed(value)
    if type(found) is not str:
        return found
    structure = from_repr(found)
    if type(structure) is dict and (structure.keys() & {"content", "result", "output"}):
        return structure
    wrapped = starts_like_json(found) and any(mark in found[:200] for mark in _WRAPPERS)
    return (salvage(found) or found) if wrapped else found


def may_say_failed(value: Any) -> bool:
    """Returns whether a wrapper in ``value`` may say that the tool failed: false positives occur, false negatives do
    not."""
    if type(value) is str:
        return ("rror" in value or "ail" in value) and _SAYS_FAILED.search(value) is not None
    return type(value) is dict or type(value) is list


def _inner(value: Any) -> tuple[Any, bool] | None:
    """Returns the content of one wrapper and whether it says "failed"; ``None`` where there is no wrapper."""
    if type(value) is str:
        if _REPR.match(value) is None:
            return None
        if value.lstrip().startswith("["):
            listed = from_repr(f"Result(items={value})")
            return None if listed is None else _inner(listed["items"])
        return _inner(from_repr(value))
    if type(value) is list:
        # Reads a list of one message, or of text blocks.
        if len(value) == 1 and type(value[0]) is dict and not _ANSWERS.isdisjoint(value[0]):
            return _of_object(value[0])
        return (_text_of(value), False) if _is_text(value) else None
    return _of_object(value) if type(value) is dict else None


def _of_object(found: Object) -> tuple[Any, bool] | None:
    if _WRAPS.isdisjoint(found):
        return None
    keys = found.keys()
    for read in (_of_message, _of_llama_index, _of_reply):
        inner = read(found)
        if inner is not None:
            return inner
    if "response" in keys and keys <= _FUNCTION_RESPONSE and ("name" in keys or "id" in keys):
        return found["response"], False
    if found.get("type") == "tool-result" and ("output" in keys or "result" in keys):
        shown = found.get("output", found.get("result"))
        return shown, type(shown) is dict and shown.get("type") in _ERRORS
    if keys <= _BLOCK and _is_text([found]):
        return found["text"], False
    if keys == {"type", "value"} and found["type"] in _VALUES:
        return found["value"], found["type"] in _ERRORS
    if len(found) == 1 or keys == {"output", "kwargs"}:
        # Reads the only member, if it is named `result` or holds another wrapper.
        inner = found.get("output", found.get("result"))
        if "result" in found and inner is not None:
            return inner, False
        return (inner, False) if inner is not None and type(inner) is not str and _inner(inner) is not None else None
    return None


def _of_message(found: Object) -> tuple[Any, bool] | None:
    """Reads a LangChain message in any of its forms, or the update that a graph's node returns instead."""
    inner = found.get("kwargs") if "lc" in found or len(found) == 1 else None
    if inner is None and found.get("type") == "tool":
        inner = found.get("data")
    if (
        type(inner) is dict
        and "content" in inner
        and ("lc" in found or not _ANSWERS.isdisjoint(inner) or "data" in found)
    ):
        return inner["content"], inner.get("status") in _FAILED
    update = found.get("update")
    messages = update.get("messages") if type(update) is dict else None
    if type(messages) is list and messages and type(messages[-1]) is dict:
        return _of_message(messages[-1]) or _of_reply(messages[-1])
    return None


def _of_llama_index(found: Object) -> tuple[Any, bool] | None:
    keys = found.keys()
    if "tool_output" in keys and ("tool_id" in keys or "tool_name" in keys):
        return found["tool_output"], False
    if "raw_output" not in keys and not ("blocks" in keys and "tool_name" in keys):
        return None
    raw = found.get("raw_output")
    shown = found.get("content", found.get("blocks")) if raw is None else raw
    return shown if type(shown) is not list else _text_of(shown), found.get("is_error") is True


def _of_reply(found: Object) -> tuple[Any, bool] | None:
    """Reads a result beside a status or the id of its call, as protocols and providers send it."""
    keys = found.keys()
    failed = found.get("isError") is True or found.get("is_error") is True or found.get("status") in _FAILED
    if "content" in keys and keys <= _BESIDE:
        content = found["content"]
        if not (keys & (_ANSWERS | _FLAGS)) and not (type(content) is list and content and _is_text(content)):
            return None
        shown = found.get("structuredContent") or found.get("structured_content") or content
        return (_text_of(shown) if type(shown) is list else shown), failed
    if "result" in keys and ("is_error" in keys or {"status", "error"} <= keys):
        error = found.get("error")
        return (found["result"] if found["result"] is not None else error), failed or bool(error)
    return None


def _is_text(blocks: list[Any]) -> bool:
    """Returns whether all blocks are text."""
    return bool(blocks) and all(
        type(block) is dict
        and type(block.get("text")) is str
        and (block.get("type", block.get("block_type")) in _TEXTS or len(block) == 1)
        for block in blocks
    )


def _text_of(blocks: list[Any]) -> Any:
    return "\n".join(block["text"] for block in blocks) if _is_text(blocks) else blocks

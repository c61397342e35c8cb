"""Unwraps arguments and results of tool calls, as JSON or Python ``repr``.

Removes only wrappers with members that tool results rarely have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pandaeval_otel.dialects._parts import result_value
from pandaeval_otel.dialects._reprs import from_repr
from pandaeval_otel.dialects._values import (
    Object,
    as_dict,
    first,
    hidden,
    identifier,
    parsed,
    salvage,
    starts_like_json,
)
from pandaeval_otel.model import Captured

FINAL_ANSWERS = frozenset({"final_answer", "final_result", "finalanswertool"})
"""Tools by which frameworks return the answer (smolagents, Pydantic AI). They are not tool calls."""
_FINISH = "finish"
"""DSPy's ReAct ends a run by a tool of this name, without arguments."""
_HAND_OVER = re.compile(
    r"finish|attempt_completion|(?:complete_task|task_complete)"
    r"|(?:submit|return|provide|give)_final_(?:answer|response|result)|respond_to_user",
    re.IGNORECASE,
)
"""Tools by which coding agents and others hand over the answer, as an argument."""
_HANDED = ("answer", "final_answer", "result", "response", "message", "output", "text", "summary")

_CALL = frozenset({"args", "kwargs"})
_CALL_NOISE = _CALL | {"sanitize_inputs_outputs", "self", "ctx", "context", "run_context", "tool_context"}
_FUNCTION_RESPONSE = frozenset({"id", "name", "response", "will_continue", "scheduling", "parts"})
_MCP_CALL = frozenset({"tool_name", "arguments"})
_RUN_CALL = frozenset({"input", "options"})
_FAILED = ("error", "failed", "failure")  # compared, not looked up: a status may be anything
_WRAPPERS = ('"lc"', '"type": "tool"', '"type":"tool"', '"output"', '"blocks"', '"ToolMessage"')
_OF_SERVER = "mcp__"
_Content = tuple[Any, bool]
"""The content of a wrapper, and whether the wrapper reports a failure."""
_MOST = 50
"""Most nested wrappers; no message nests more structures."""
_REPR = re.compile(
    r"\s*(?:(?:\[\s*)?[A-Za-z_.]*(?:Message|Output|Result|Response|Content|Return|Block)\("
    r"|(?:content|meta|status|blocks|tool_name|result)=)"
)
_SAYS_FAILED = re.compile(
    r"is_?error\W{1,6}true|\b(?:status|state)\W{1,6}(?:error|failed|failure)\b|\btype\W{1,6}error-", re.IGNORECASE
)
_NAMES_TOOL = re.compile(r"\b(?:tool|function)\b|Please fix your mistakes|Traceback \(", re.IGNORECASE)
_RAISED = re.compile(
    r"\s*(?:An error occurred while running the tool\b|Error: [\s\S]{1,2000}\n ?Please fix your mistakes\.\s*\Z"
    r"|Error (?:in|executing|calling|invoking|running|while executing) (?:the )?(?:tool|function)\b"
    r"|Error during tool execution\b|Tool (?:execution|call) failed\b|Traceback \(most recent call last\))",
    re.IGNORECASE,
)
"""Texts of OpenAI Agents, LangGraph, ADK, Semantic Kernel and others."""
_ANSWERS = frozenset({"tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id"})
"""Members by which a message names the call that it answers."""
_FLAGS = frozenset({"isError", "is_error", "structuredContent", "structured_content"})
_BESIDE = (
    _ANSWERS
    | _FLAGS
    | {
        *("content", "type", "_meta", "meta", "status", "id", "name", "tool_name", "toolName", "role"),
        *("artifact", "additional_kwargs", "response_metadata", "annotations", "state", "metadata"),
    }
)
_TEXTS = ("text", "input_text", "output_text")
_BLOCK = frozenset({"type", "text", "annotations", "_meta", "meta"})
"""Members of MCP's text content."""
_ONLY = ("output", "result", "func")
"""Members that may be a wrapper's only member."""
_WRAPS = frozenset(
    {
        *("kwargs", "type", "update", "tool_output", "raw_output", "blocks", "content", "result", "response", "text"),
        *_ONLY,
    }
)
"""Members of which every wrapper has at least one."""
_ERRORS = ("error-text", "error-json")
_VALUES = ("text", "json", "content", *_ERRORS)
"""Types of the ``output`` in Vercel results, beside its ``value``."""


@lru_cache(maxsize=1024)
def may_be_final_answer(name: str) -> bool:
    return name.lower() in FINAL_ANSWERS or _HAND_OVER.fullmatch(name) is not None


def is_final_answer(name: str, value: Any) -> bool:
    """Return whether this call is the framework's way to end the run."""
    word = name.lower()
    if word in FINAL_ANSWERS:
        return True
    if _HAND_OVER.fullmatch(name) is None:
        return False
    arguments = tool_arguments(value)
    if arguments is None or not arguments.value:
        return word == _FINISH
    return type(arguments.value) is dict and answer_in_arguments(arguments.value) is not None


def answer_in_arguments(arguments: Mapping[str, Any]) -> str | None:
    """Return the answer among a tool's arguments."""
    for key in _HANDED:
        if type(text := arguments.get(key)) is str and text.strip():
            return text
    return None


def tool_of_server(name: str) -> str:
    """Return an MCP tool's own name; Claude calls it ``mcp__SERVER__TOOL``."""
    if not name.startswith(_OF_SERVER):
        return name
    return name.removeprefix(_OF_SERVER).partition("__")[2] or name


def tool_arguments(value: Any, schema: Any = None) -> Captured | None:
    """Return a tool's arguments; ``None`` if not captured or cut.

    ``schema`` (JSON schema or parameters by name) names positional arguments.
    """
    if hidden(value) or value == "":
        return None
    value = parsed(value)
    if type(value) is str and starts_like_json(value):
        return None
    return Captured(_unwrapped_arguments(value, schema) if type(value) is dict else value)


def _unwrapped_arguments(value: Object, schema: Any) -> Any:
    keys = value.keys()
    if "input_str" in keys or ("inputs" in keys and {"tags", "metadata"} <= keys):
        return as_dict(value.get("inputs")) or parsed(value.get("input_str"))
    if keys == _MCP_CALL:
        return value["arguments"]
    if keys == _RUN_CALL and type(value["input"]) is dict and value["options"] is None:
        return value["input"]
    named, positional = parsed(value.get("kwargs")) or {}, parsed(value.get("args")) or ()
    is_call = keys & _CALL and not keys - _CALL_NOISE
    if not is_call or not isinstance(positional, (list, tuple)) or type(named) is not dict:
        return value
    only = parsed(positional[0]) if len(positional) == 1 and not named else None
    if type(only) is dict:
        return only
    schema = as_dict(parsed(schema))
    names = [*as_dict(schema.get("properties", schema))]
    names += [f"arg{at}" for at in range(len(names), len(positional))]
    return dict(zip(names, positional, strict=False)) | named


@dataclass(frozen=True, slots=True)
class Outcome:
    """A tool's result. ``failed``: the result reports a failure."""

    result: Captured | None = None
    call_id: str = ""
    name: str = ""
    failed: bool = False


def tool_outcome(value: Any, wrapped: bool = False) -> Outcome:
    """Return the result in ``value``. ``wrapped``: every result is in ``{"output": …}``."""
    if hidden(value):
        return Outcome()
    result = _structure(value)
    if wrapped and type(result) is dict and result.keys() == {"output"}:
        result = _structure(result["output"])
    call_id = name = ""
    failed = type(result) is dict and _is_error(result)
    for content, is_failure, wrapper in _unwrappings(result):
        inner = next((wrapper[key] for key in ("kwargs", "data") if type(wrapper.get(key)) is dict), wrapper)
        call_id = call_id or identifier(inner.get("id" if "response" in inner else "tool_call_id"))
        name = name or identifier(first(inner, ("name", "tool_name")))
        result, failed = content, failed or is_failure
    return Outcome(Captured(result_value(result)), call_id, name, failed)


def unwrapped(value: Any) -> tuple[Any, bool]:
    """Unwrap ``value``, and return whether a wrapper reports a failure. Idempotent; never raises."""
    failed = False
    for content, is_failure, _ in _unwrappings(value):
        value, failed = content, failed or is_failure
    return value, failed


def _unwrappings(value: Any) -> Iterator[tuple[Any, bool, Object]]:
    for _ in range(_MOST):
        content = _inner(value)
        if content is None:
            return
        wrapper, value = as_dict(value), result_value(content[0])
        yield value, content[1], wrapper


def _structure(value: Any) -> Any:
    text = parsed(value)
    if type(text) is not str:
        return text
    structure = as_dict(from_repr(text))
    if structure.keys() & {"content", "result", "output"}:
        return structure
    wrapped = starts_like_json(text) and any(mark in text[:200] for mark in _WRAPPERS)
    return (wrapped and salvage(text)) or text


def may_say_failed(value: Any) -> bool:
    """Return whether a wrapper may report a failure. No false negatives."""
    if type(value) is str:
        if "rror" not in value and "ail" not in value and "Traceback" not in value:
            return False
        return _SAYS_FAILED.search(value) is not None or _NAMES_TOOL.search(value) is not None
    return type(value) is dict or type(value) is list


def says_failed(result: Any) -> bool:
    """Return whether a framework's text about an exception replaces the result."""
    text = result.get("error") if type(result) is dict and len(result) == 1 else result
    return type(text) is str and _RAISED.match(text) is not None


def _inner(value: Any) -> _Content | None:
    if type(value) is dict:
        return _of_object(value)
    if type(value) is list:
        # Reads a list of one message, or of text blocks.
        if len(value) == 1 and type(value[0]) is dict and not _ANSWERS.isdisjoint(value[0]):
            return _of_object(value[0])
        if _is_text(value):
            return (_text_of(value), False)
        return None
    if type(value) is not str or _REPR.match(value) is None:
        return None
    if value.lstrip().startswith("["):
        return _inner(as_dict(from_repr(f"Result(items={value})")).get("items"))
    return _inner(from_repr(value))


def _of_object(wrapper: Object) -> _Content | None:
    if _WRAPS.isdisjoint(wrapper):
        return None
    for read in (_of_message, _of_llama_index, _of_reply, _of_call):
        content = read(wrapper)
        if content is not None:
            return content
    keys = wrapper.keys()
    if len(wrapper) == 1 or keys == {"output", "kwargs"}:
        # Reads the only member, if it is named `result` or holds another wrapper.
        content = first(wrapper, _ONLY)
        is_result = not keys.isdisjoint(("result", "func")) or _inner(content) is not None
        if content is not None and is_result:
            return (content, False)
    return None


def _of_call(wrapper: Object) -> _Content | None:
    keys = wrapper.keys()
    if "response" in keys and keys <= _FUNCTION_RESPONSE and ("name" in keys or "id" in keys):
        return wrapper["response"], False
    if wrapper.get("type") == "tool-result" and ("output" in keys or "result" in keys):
        content = wrapper.get("output", wrapper.get("result"))
        return content, as_dict(content).get("type") in _ERRORS
    if keys <= _BLOCK and _is_text([wrapper]):
        return wrapper["text"], False
    if keys == {"type", "value"} and wrapper["type"] in _VALUES:
        return wrapper["value"], wrapper["type"] in _ERRORS
    return None


def _of_message(wrapper: Object) -> _Content | None:
    inner = wrapper.get("kwargs") if "lc" in wrapper or len(wrapper) == 1 else None
    if inner is None and wrapper.get("type") == "tool":
        inner = wrapper.get("data")
    inner = as_dict(inner)
    if "content" in inner and ("lc" in wrapper or "data" in wrapper or not _ANSWERS.isdisjoint(inner)):
        return inner["content"], inner.get("status") in _FAILED
    messages = as_dict(wrapper.get("update")).get("messages")
    if type(messages) is list and messages and type(messages[-1]) is dict:
        return _of_message(messages[-1]) or _of_reply(messages[-1])
    return None


def _of_llama_index(wrapper: Object) -> _Content | None:
    keys = wrapper.keys()
    if "tool_output" in keys and ("tool_id" in keys or "tool_name" in keys):
        return wrapper["tool_output"], False
    if "raw_output" not in keys and not ("blocks" in keys and "tool_name" in keys):
        return None
    content = wrapper.get("raw_output")
    if content is None:
        content = wrapper.get("content", wrapper.get("blocks"))
    return _text_of(content), wrapper.get("is_error") is True


def _of_reply(wrapper: Object) -> _Content | None:
    keys = wrapper.keys()
    failed = _is_error(wrapper) or wrapper.get("status", wrapper.get("state")) in _FAILED
    if "content" in keys and keys <= _BESIDE:
        content = wrapper["content"]
        if not (keys & (_ANSWERS | _FLAGS)) and not (type(content) is list and _is_text(content)):
            return None
        return _text_of(wrapper.get("structuredContent") or wrapper.get("structured_content") or content), failed
    if "result" in keys and ("is_error" in keys or {"status", "error"} <= keys):
        content, error = wrapper["result"], wrapper.get("error")
        return (error if content is None else content), failed or bool(error)
    return None


def _is_error(wrapper: Object) -> bool:
    return wrapper.get("isError") is True or wrapper.get("is_error") is True


def _is_text(blocks: list[Any]) -> bool:
    return bool(blocks) and all(
        type(block) is dict
        and type(block.get("text")) is str
        and (block.get("type", block.get("block_type")) in _TEXTS or len(block) == 1)
        for block in blocks
    )


def _text_of(content: Any) -> Any:
    if type(content) is list and _is_text(content):
        return "\n".join(block["text"] for block in content)
    return content

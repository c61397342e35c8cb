"""Parses Python ``repr`` and ``str`` texts, such as ``ChatMessage(_role=<ChatRole.USER: 'user'>)``, into the
dictionaries that message readers expect.
"""

from __future__ import annotations

import ast
import re
from math import isfinite
from typing import Any

from pandaeval_otel.base._json import MAX_DEPTH
from pandaeval_otel.dialects._values import MAX_REPR, Object

_OBJECT = re.compile(r"\[?[A-Za-z_][\w.]*\((?:\w+=|[\w.]+\()")
_FIELDS = re.compile(r"[A-Za-z_]\w*=(?:['\"\[({<]|None\b|True\b|False\b|-?\d|\w+\()")
_TOKEN = re.compile(
    r"""[bru]?(?P<string>'[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+\")"""
    r"|(?P<word>[A-Za-z_][\w.]*)(?P<field>=)?"
    r"|(?P<number>-?\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?)"
    r"|(?P<angle><[^<>:]*+(?::\s*+(?P<value>'[^'<>]*+'|\"[^\"<>]*+\"|-?[\w.]++))?+[^<>]*+>)"
    r"|(?P<gap>(?<=[^\s,(\[{])\s+(?=[A-Za-z_]\w*=))",
    re.DOTALL,
)
"""Matches text that Python would not parse as meant: ``<Role.USER: 'user'>``, keyword field names, missing commas."""
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_MAX_DIGITS = 19
_LANGCHAIN = frozenset({"content", "additional_kwargs", "response_metadata"})
_FEWEST_FIELDS = 2
"""People also write ``x=5``, so a single field is not enough."""

# Classes of message parts and the block types that they stand for; of other classes only the fields are kept.
_PART_TYPES = {
    **dict.fromkeys(("TextContent", "TextBlock", "TextPart", "OutputText", "ResponseOutputText"), "text"),
    **dict.fromkeys(("ReasoningContent", "ThinkingBlock", "ThinkingPart", "ReasoningPart"), "reasoning"),
    **dict.fromkeys(("ToolCall", "ToolCallBlock", "ToolUseBlock", "ToolCallPart", "FunctionCall"), "tool_call"),
    **dict.fromkeys(("ToolCallResult", "ToolResultBlock", "FunctionExecutionResult"), "tool_call_response"),
    **dict.fromkeys(("ImageContent", "ImageBlock", "ImageURLBlock"), "image"),
}


def from_repr(text: str) -> Any:
    """Return the structure in ``text``; ``None`` if it is no repr or was cut."""
    text = text.strip()
    is_object = _OBJECT.match(text) is not None
    if len(text) > MAX_REPR or not (is_object or _FIELDS.match(text)):
        return None
    code = _TOKEN.sub(_as_python, text)
    try:
        found = _value(ast.parse(code if is_object else f"_({code})", mode="eval").body, 0)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    if len(found) >= (1 if is_object else _FEWEST_FIELDS):
        return found
    return None


def is_object_text(text: str) -> bool:
    """Return whether ``text`` is a cut or uninformative repr, such as ``<Context object at 0x7f…>``."""
    if text.startswith("<"):
        return " object at 0x" in text or text.endswith(" object>")
    return _OBJECT.match(text) is not None and (not text.endswith((")", ")]")) or from_repr(text) is None)


def _as_python(token: re.Match[str]) -> str:
    if token["string"]:
        return repr(_string(token["string"]))
    if token["word"]:
        if token["field"]:
            return f"_{token['word']}="
        return token["word"]
    if token["number"]:
        return f"{_number(token['number'])!r} "
    if token["gap"]:
        return ","
    if token["value"]:
        return repr(token["value"].strip("'\""))
    return "None"


def _value(node: ast.expr, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_value(item, depth + 1) for item in items]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            pairs = zip(keys, values, strict=True)
            return {str(_value(key, depth + 1)): _value(inner, depth + 1) for key, inner in pairs if key is not None}
        case ast.Name() | ast.Attribute():
            return ast.unparse(node)
        case ast.Call(func=ast.Name() | ast.Attribute()):
            fields = {str(at): _value(inner, depth + 1) for at, inner in enumerate(node.args)}
            fields |= {(field.arg or "").lstrip("_"): _value(field.value, depth + 1) for field in node.keywords}
            return _object(ast.unparse(node.func).rpartition(".")[2].lstrip("_"), fields)
    raise ValueError("no repr of an object")


def _string(quoted: str) -> str:
    text = quoted[1:-1]
    if "\\" in text:
        return _ESCAPE.sub(_unescaped, text)
    return text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] not in "xuU":
        return _ESCAPES.get(code, code)
    number = int(code[1:], 16)
    # Half a surrogate pair could not be written to a database.
    if number < 0x110000 and not 0xD800 <= number < 0xE000:
        return chr(number)
    return "\ufffd"


def _number(text: str) -> Any:
    if text.lstrip("-").isdecimal() and len(text) <= _MAX_DIGITS:
        return int(text)
    number = float(text.replace("_", ""))
    if isfinite(number):
        return number
    return text


def _object(name: str, fields: Object) -> Object:
    if name in _PART_TYPES:
        origin = fields.get("origin")  # Haystack: a result names the call that it answers
        if type(origin) is dict:
            fields = {**fields, "id": origin.get("id"), "name": origin.get("tool_name")}
        return {**fields, "type": _PART_TYPES[name]}
    kind = name or str(fields.get("type", "")) or _langchain_kind(fields)
    if kind.endswith(("Message", "Event")):
        if "role" in fields:
            return fields
        return {**fields, "type": kind}
    return fields


def _langchain_kind(fields: Object) -> str:
    """Return the class of a LangChain message, which its ``str`` omits; ``""`` for other objects."""
    if "tool_call_id" in fields and "content" in fields:
        return "ToolMessage"
    if not fields.keys() >= _LANGCHAIN:
        return ""
    # Only a model's message has calls, tokens or details of its response.
    is_model = "tool_calls" in fields or "usage_metadata" in fields or bool(fields["response_metadata"])
    return "AIMessage" if is_model else "HumanMessage"

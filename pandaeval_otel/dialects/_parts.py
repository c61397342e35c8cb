"""Reads a message part in any provider's or framework's form. Unknown types become :class:`OtherPart`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pandaeval_otel.dialects import _hosted
from pandaeval_otel.dialects._values import (
    LONGEST_PLACEHOLDER,
    Object,
    as_dict,
    first,
    hidden,
    identifier,
    parsed,
    visible,
)
from pandaeval_otel.model import NOT_CAPTURED, Media, OtherPart, Part, Reasoning, Text, ToolRequest, ToolResponse

_Reader = Callable[[Object], Part | tuple[Part, ...] | None]
MAX_URI = 2048
_MODALITIES = ("image", "audio", "video", "document", "file")
_TYPES = frozenset({"blob", "uri", "file", "media", "binary", "inline_data", "file_data"})
_MEDIA_KEYS = (*_MODALITIES[:4], "media", "inline_data", "inlineData", "file_data", "fileData")
_URI_KEYS = ("uri", "url", "file_uri", "fileUri", "file_id", "image_url", "s3Location")
_MIME_KEYS = ("mime_type", "media_type", "mimeType", "mediaType", "contentType", "format")
_TEXT_KEYS = ("content", "text", "refusal")
_REASONING_KEYS = ("content", "text", "thinking", "reasoning", "reasoningText", "summary")
_THOUGHT_KEY = "reasoningContent"
_THOUGHT = f'{{"{_THOUGHT_KEY}": {{'
"""Begins a thought of Amazon Bedrock that OpenLLMetry writes as the JSON text of its block."""
_NAME_KEYS = ("name", "toolName", "tool_name")
_CALL_ID_KEYS = ("call_id", "toolCallId", "tool_call_id", "toolUseId", "tool_use_id", "id", "ref")
_APPROVALS = ("approvalId", "approval_id", "approval_request_id")
_FAILED = ("error", "failed", "failure")  # compared, not looked up: a status may be anything
_OUTPUT_TYPES = frozenset({"json", "text", "content"})
_OUTPUT_KEYS = frozenset({"type", "value", "providerOptions"})
"""Members with which the Vercel AI SDK writes a tool's output in messages."""
_RESULT_KEYS = ("response", "result", "output", "content", "server_tool_call_response")


def parts_of(content: Any) -> Iterable[Part]:
    """Return the parts of a content: a string, a block, or a list of both."""
    if type(content) is str:
        return (text_part(content),)
    if type(content) is dict:
        return parts_in(content)
    if isinstance(content, (list, tuple)):
        return [part for item in content for part in (parts_in(item) if type(item) is dict else (text_part(item),))]
    if content is None:
        return ()
    return (text_part(content),)


def blocks_of(value: Any) -> Any:
    blocks = parsed(value)
    if type(blocks) is dict:
        blocks = [blocks]
    if isinstance(blocks, (list, tuple)) and all(map(_is_block, blocks)):
        return blocks
    return value


def _is_block(item: Any) -> bool:
    if type(item) is not dict:
        return False
    return type(item.get("type")) is str or not _BY_KEY.keys().isdisjoint(item) or media_of(item, "") is not None


def parts_in(block: Object) -> tuple[Part, ...]:
    """Return the parts in ``block``: two for a call with result, none for an empty block."""
    kind = block.get("type") or block.get("kind")  # "kind": pydantic-ai's first format
    unread = block
    if type(kind) is str:
        reader = _BY_TYPE.get(kind) or _by_word(kind)
        if reader is None:
            unread = {name: value for name, value in block.items() if name != "type"}
    else:
        kind = ""
        reader = next((read for key, read in _BY_KEY.items() if key in block), None)
    if reader is None:
        return (media_of(block, kind) or OtherPart(kind, unread),)
    parts = reader(block)
    if isinstance(parts, tuple):
        return parts
    if parts is None:
        return ()
    return (parts,)


def text_part(value: Any) -> Part:
    """Return a text part, or :data:`NOT_CAPTURED` for a placeholder."""
    if type(value) is str and len(value) > LONGEST_PLACEHOLDER:
        return Text(value)
    if hidden(value):
        return NOT_CAPTURED
    return Text(_flat(value))


def request_of(call: Object) -> ToolRequest:
    inner = call.get("function")
    source = inner if type(inner) is dict else call
    name = source.get("name") or first(source, _NAME_KEYS) or first(call, _NAME_KEYS)
    if not name and type(inner) is str:
        name = inner
    arguments = source.get("arguments")
    if arguments is None:
        arguments = first(source, ("args", "input", "parameters"))
    if type(arguments) is not dict:
        arguments = visible(arguments)
    name, call_id = identifier(name), identifier(first(call, _CALL_ID_KEYS))
    hosted = _hosted.is_hosted(call, name, call_id)
    return ToolRequest(name, _hosted.chosen(arguments) if hosted else arguments, call_id, hosted)


def response_of(block: Object) -> Part | None:
    """Return a tool response; :data:`NOT_CAPTURED` without a call id. ``None`` for a hosted tool's status."""
    result = first(block, _RESULT_KEYS)
    origin = block.get("origin")  # Haystack: the call that is answered
    if type(origin) is dict:
        block = {**origin, **block}
    call_id, name = identifier(first(block, _CALL_ID_KEYS)), identifier(first(block, _NAME_KEYS))
    if _hosted.is_result(str(block.get("type"))) or _hosted.is_hosted(block, name, call_id):
        result = _hosted.outcome(result_value(result))
        if result is _hosted.NOT_RECORDED:
            return None
    if not call_id and hidden(result) and not any(key in block for key in _RESULT_KEYS):
        return NOT_CAPTURED
    return ToolResponse(outcome_of(block, result_value(result)), call_id, name)


def _approval(block: Object) -> Part | None:
    if block.get("approved", block.get("approve")) is not False:
        return None
    call_id = first(as_dict(block.get("function_call")), _CALL_ID_KEYS) or first(block, (*_CALL_ID_KEYS, *_APPROVALS))
    return ToolResponse({"type": "execution-denied", "reason": block.get("reason")}, identifier(call_id))


def outcome_of(block: Object, result: Any) -> Any:
    """Return ``result``, in MCP's error form if its wrapper reports a failure."""
    failed = block.get("is_error") is True or block.get("isError") is True or block.get("status") in _FAILED
    if failed:
        return {"content": result, "is_error": True}
    return result


def result_value(value: Any) -> Any:
    value = parsed(value)
    if type(value) is str:
        if hidden(value):
            return None
        return value
    if type(value) is dict:
        return _output_value(value)
    if isinstance(value, (list, tuple)) and value and all(type(item) is dict for item in value):
        if len(value) == 1 and value[0].keys() == {"json"}:
            return value[0]["json"]
        texts = [_only_text(item) for item in value]
        if None not in texts:
            return parsed("\n".join(map(str, texts)))
    return value


def _only_text(block: Object) -> str | None:
    text = first(block, _TEXT_KEYS) if block.get("type", "text") == "text" and len(block) <= 3 else None
    if type(text) is str:
        return text
    return None


def _output_value(output: Object) -> Any:
    if "value" not in output or not output.keys() <= _OUTPUT_KEYS:
        return output
    kind = str(output.get("type"))
    if kind in _OUTPUT_TYPES:
        return result_value(output["value"])
    if kind in ("error-text", "error-json") and len(output) == 2:
        return {"content": result_value(output["value"]), "is_error": True}
    return output


def _flat(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(item if type(item) is str else _flat_once(item) for item in value)
    if type(value) is dict:
        return _flat_once(value)
    if value is None or isinstance(value, bytes):
        return ""
    return str(value)


def _flat_once(value: Any) -> str:
    inner = first(as_dict(value), ("text", "value", "content"))
    if type(inner) is str:
        return inner
    return ""


def _text(block: Object) -> Part:
    if block.get("thought") is True:  # Gemini marks thinking on an ordinary text part
        return _reasoning(block)
    text = first(block, _TEXT_KEYS)
    if type(text) is str and text.startswith(_THOUGHT):
        return _reasoning(as_dict(as_dict(parsed(text)).get(_THOUGHT_KEY)) or block)
    return text_part(text)


def _reasoning(block: Object) -> Part:
    value = next((block[key] for key in _REASONING_KEYS if block.get(key)), None)
    if value is None:
        value = first(block, _REASONING_KEYS)  # an empty thought
    value = first(as_dict(value), ("reasoningText", "text")) or value
    if hidden(value):
        return NOT_CAPTURED
    return Reasoning(_flat(value))


def _hosted_call(block: Object, word: str) -> tuple[Part, ...]:
    name, arguments, result = _hosted.read_call(block, word)
    call_id = identifier(first(block, _CALL_ID_KEYS))
    request = ToolRequest(name, None if hidden(arguments) else arguments, call_id, hosted=True)
    if result is _hosted.NOT_RECORDED:
        return (request,)
    return request, ToolResponse(result_value(result), call_id, name)


def _by_word(kind: str) -> _Reader | None:
    word = kind.lower().replace("-", "_")
    if word in _hosted.CALLS:
        return lambda block: _hosted_call(block, word)
    return _BY_TYPE.get(word) or (response_of if _hosted.is_result(word) else None)


def _inner(key: str, read: _Reader) -> _Reader:
    def reader(block: Object) -> Part | tuple[Part, ...] | None:
        value = block.get(key, block.get("content"))
        return read(value if type(value) is dict else {"content": value})

    return reader


def media_of(block: Object, kind: str) -> Media | None:
    """Return type and location of the media in ``block``, without content, or ``None``.

    ``kind``: the block's type or ``""``.
    """
    if kind:
        word = kind.lower().replace("-", "_").removeprefix("input_")
        if word in _TYPES or word.startswith(_MODALITIES):
            return _media(block, word)
        return None
    key = next((key for key in _MEDIA_KEYS if key in block), None)
    if key is None:
        return None
    return _media(block, key)


def _media(block: Object, word: str) -> Media:
    members = [block, *(value for value in block.values() if type(value) is dict)]
    members += [value for member in members[1:] for value in member.values() if type(value) is dict]
    uri, mime = _find(members, _URI_KEYS), _find(members, _MIME_KEYS)
    if uri.startswith("data:"):
        mime = mime or uri[5:].partition(";")[0][:100]
        uri = ""
    kinds = (kind for kind in _MODALITIES[:4] if word.startswith(kind) or mime.startswith(kind))
    return Media(identifier(block.get("modality")) or next(kinds, "document"), uri[:MAX_URI], identifier(mime))


def _find(members: list[Object], keys: tuple[str, ...]) -> str:
    values = (member.get(key) for member in members for key in keys)
    return next((value for value in values if type(value) is str and value), "")


def _code_result(block: Object) -> Part:
    output = block.get("output")
    if block.get("outcome") not in (None, "OUTCOME_OK", 1):
        output = {"content": output or block["outcome"], "is_error": True}
    return ToolResponse(output, identifier(block.get("id")), "code_execution")


def _code_call(block: Object) -> Part:
    return ToolRequest("code_execution", block, identifier(block.get("id")), hosted=True)


def _wrapped(read: _Reader, *keys: str) -> dict[str, _Reader]:
    return {key: _inner(key, read) for key in keys}


def _tables() -> tuple[dict[str, _Reader], dict[str, _Reader]]:
    inner = _wrapped(request_of, "toolUse") | _wrapped(response_of, "toolResult")
    inner |= _wrapped(_reasoning, _THOUGHT_KEY) | _wrapped(_code_call, "executable_code", "executableCode")
    inner |= _wrapped(_code_result, "code_execution_result", "codeExecutionResult")
    by_type: dict[_Reader, tuple[str, ...]] = {
        _text: ("text", "output_text", "input_text", "summary_text", "refusal"),
        _reasoning: ("reasoning", "thinking", "reasoning_content", "thought"),
        _approval: ("tool_approval_response", "function_approval_response", "mcp_approval_response"),
        request_of: ("tool_call", "tool_use", "function_call", "custom_tool_call", "function"),
        response_of: (
            *("tool_call_response", "tool_result", "function_response", "function_call_output"),
            *("tool_response", "custom_tool_call_output"),
        ),
    }
    by_key = {"text": _text} | inner
    by_key |= _wrapped(request_of, "function_call", "functionCall", "tool_call", "toolRequest")
    by_key |= _wrapped(response_of, "function_response", "functionResponse", "toolResponse", "tool_call_result")
    by_key |= {"reasoning": _reasoning, "content": _text}
    return {kind: read for read, kinds in by_type.items() for kind in kinds} | inner, by_key


_BY_TYPE, _BY_KEY = _tables()

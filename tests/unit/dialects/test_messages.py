"""Messages of every known provider and framework."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pandaeval_otel.base._json import MAX_DEPTH
from pandaeval_otel.dialects._messages import messages_of, read_messages, system_text
from pandaeval_otel.model import (
    NOT_CAPTURED,
    Media,
    Message,
    OtherPart,
    Reasoning,
    Text,
    ToolRequest,
    ToolResponse,
)

ASK = Message("user", (Text("Weather in Oslo?"),))
CALL = ToolRequest("get_weather", {"city": "Oslo"}, "c9")
RESULT = ToolResponse({"temp_c": 4}, "c9", "")
RUN = (ASK, Message("assistant", (Text("I look."), CALL)), Message("tool", (RESULT,)))

OTEL = [
    {"role": "user", "parts": [{"type": "text", "content": "Weather in Oslo?"}], "name": None},
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "I look."},
            {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": {"city": "Oslo"}},
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c9", "response": {"temp_c": 4}}]},
]
PYDANTIC = [
    OTEL[0],
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "I look."},
            {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        ],
    },
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c9", "result": '{"temp_c": 4}'}]},
]
OPENAI = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c9", "content": '{"temp_c": 4}'},
]
RESPONSES = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Oslo?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "I look."},
            {
                "type": "function_call",
                "call_id": "c9",
                "id": "fc_1",
                "name": "get_weather",
                "arguments": '{"city":"Oslo"}',
            },
        ],
    },
    {"type": "function_call_output", "call_id": "c9", "output": '{"temp_c": 4}'},
]
ANTHROPIC = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c9", "name": "get_weather", "input": {"city": "Oslo"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c9", "content": [{"type": "text", "text": '{"temp_c": 4}'}]}
        ],
    },
]
BEDROCK = [
    {"role": "user", "content": [{"text": "Weather in Oslo?"}]},
    {
        "role": "assistant",
        "content": [
            {"text": "I look."},
            {"toolUse": {"toolUseId": "c9", "name": "get_weather", "input": {"city": "Oslo"}}},
        ],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "c9", "status": "success", "content": [{"json": {"temp_c": 4}}]}}],
    },
]
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": "Weather in Oslo?"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I look."},
                {"function_call": {"id": "c9", "name": "get_weather", "args": {"city": "Oslo"}}},
            ],
        },
        {"role": "user", "parts": [{"function_response": {"id": "c9", "response": {"temp_c": 4}}}]},
    ]
}
LANGCHAIN = {
    "messages": [
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "HumanMessage"],
                "kwargs": {"content": "Weather in Oslo?", "type": "human"},
            },
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessageChunk"],
                "kwargs": {
                    "content": "I look.",
                    "tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}, "id": "c9", "type": "tool_call"}],
                },
            },
            {"type": "tool", "data": {"content": '{"temp_c": 4}', "tool_call_id": "c9"}},
        ]
    ]
}
LANGCHAIN_PLAIN = {
    "messages": [
        ["human", "Weather in Oslo?"],
        {
            "type": "ai",
            "content": "I look.",
            "tool_calls": [{"name": "get_weather", "args": {"city": "Oslo"}, "id": "c9"}],
        },
        {"type": "tool", "content": '{"temp_c": 4}', "tool_call_id": "c9"},
    ]
}
VERCEL = [
    {"role": "user", "content": [{"type": "text", "text": "Weather in Oslo?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool-call", "toolCallId": "c9", "toolName": "get_weather", "input": {"city": "Oslo"}},
        ],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "c9", "output": {"type": "json", "value": {"temp_c": 4}}}],
    },
]
HAYSTACK = [
    {"role": "user", "content": [{"text": "Weather in Oslo?"}]},
    {
        "role": "assistant",
        "content": [
            {"text": "I look."},
            {"tool_call": {"tool_name": "get_weather", "arguments": {"city": "Oslo"}, "id": "c9"}},
        ],
    },
    {"role": "tool", "content": [{"tool_call_result": {"result": '{"temp_c": 4}', "id": "c9", "error": False}}]},
]
FORMS: dict[str, Any] = {
    "otel": OTEL,
    "pydantic": PYDANTIC,
    "openai": OPENAI,
    "responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "bedrock": BEDROCK,
    "gemini": GEMINI,
    "langchain": LANGCHAIN,
    "langchain_plain": LANGCHAIN_PLAIN,
    "vercel": VERCEL,
    "haystack": HAYSTACK,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encode", [lambda value: value, json.dumps, lambda value: json.dumps(json.dumps(value)), repr])
def test_every_form_and_encoding_of_one_conversation_gives_the_same_messages(form: str, encode: Any) -> None:
    assert messages_of(encode(FORMS[form]), "user") == RUN


def test_tuples_are_read_as_lists() -> None:
    assert messages_of(({"role": "user", "parts": ({"type": "text", "content": "Weather in Oslo?"},)},), "user") == (
        ASK,
    )


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("human", "user"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("developer", "system"),
        ("function", "tool"),
        ("MessageRole.USER", "user"),
        ("MessageRole.TOOL_RESPONSE", "tool"),
        ("ASSISTANT", "assistant"),
        ("weather_expert", "user"),
    ],
)
def test_role_names_are_mapped_to_standard_roles(word: str, role: str) -> None:
    found = messages_of([{"role": word, "content": "x"}], "user")
    assert found is not None
    assert found[0].role == role


def test_a_user_message_with_only_tool_results_has_the_role_tool() -> None:
    mixed = [{"type": "tool_result", "tool_use_id": "c9", "content": "ok"}, {"type": "text", "text": "and now?"}]
    assert [message.role for message in messages_of([{"role": "user", "content": mixed[:1]}], "user") or ()] == ["tool"]
    assert [message.role for message in messages_of([{"role": "user", "content": mixed}], "user") or ()] == ["user"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "content": "hm"},
        {"type": "thinking", "content": "hm"},
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "reasoningContent", "content": {"reasoningText": {"text": "hm"}}},
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"text": "hm", "thought": True},
        {"kind": "thinking", "text": "hm"},
    ],
)
def test_reasoning_is_no_text(block: dict[str, Any]) -> None:
    found = messages_of([{"role": "assistant", "content": [block]}], "assistant")
    assert found == (Message("assistant", (Reasoning("hm"),)),)
    assert found[0].text == ""


def test_openai_reasoning_fields_come_before_the_text() -> None:
    found = messages_of([{"role": "assistant", "reasoning_content": "hm", "content": "Four."}], "assistant")
    assert found == (Message("assistant", (Reasoning("hm"), Text("Four."))),)


@pytest.mark.parametrize(
    ("block", "media"),
    [
        (
            {"type": "blob", "modality": "image", "content": "QUJD", "mime_type": "image/png"},
            Media("image", "", "image/png"),
        ),
        ({"type": "blob", "modality": "audio", "data": "QUJD"}, Media("audio")),
        ({"type": "uri", "modality": "image", "uri": "https://x/y.png"}, Media("image", "https://x/y.png")),
        ({"type": "file", "modality": "document", "file_id": "f1"}, Media("document", "f1")),
        ({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, Media("image", "https://x/y.png")),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}, Media("image", "", "image/png")),
        ({"type": "image-url", "url": "https://x/y.png"}, Media("image", "https://x/y.png")),
        ({"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}}, Media("audio", "", "wav")),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
            Media("image", "", "image/png"),
        ),
        ({"image": {"format": "png", "source": {"bytes": "QUJD"}}}, Media("image", "", "png")),
        ({"inline_data": {"mime_type": "image/png", "data": "QUJD"}}, Media("image", "", "image/png")),
        (
            {"file_data": {"file_uri": "gs://b/x.pdf", "mime_type": "application/pdf"}},
            Media("document", "gs://b/x.pdf", "application/pdf"),
        ),
    ],
)
def test_media_parts_keep_type_and_uri_but_no_content(block: dict[str, Any], media: Media) -> None:
    found = messages_of([{"role": "user", "content": [block]}], "user")
    assert found == (Message("user", (media,)),)
    assert "QUJD" not in repr(found)


def test_unknown_parts_are_kept() -> None:
    found = messages_of([{"role": "assistant", "parts": [{"type": "compaction", "id": "k"}]}], "assistant")
    assert found == (Message("assistant", (OtherPart("compaction", {"id": "k"}),)),)


@pytest.mark.parametrize("nothing", [None, "", "{}", {}, "<elided>", "[REDACTED]", b"\xff"])
def test_absent_and_placeholder_values_are_not_captured(nothing: Any) -> None:
    assert messages_of(nothing, "user") is None


@pytest.mark.parametrize("empty", ["[]", [], (), '"[]"'])
def test_an_empty_list_is_captured_and_empty(empty: Any) -> None:
    assert messages_of(empty, "user") == ()


@pytest.mark.parametrize(
    "hidden",
    [
        [{"role": "user", "parts": [{"type": "text"}]}],
        [{"role": "user", "parts": [{"type": "text", "content": None}]}],
        [{"role": "user", "content": "<elided>"}],
        [{"role": "user", "content": "__REDACTED__"}],
        [{"role": "user"}],
        [{"role": "assistant", "parts": [{"type": "thinking"}, {"type": "text"}]}],
    ],
)
def test_messages_without_their_content_are_not_captured(hidden: Any) -> None:
    assert messages_of(hidden, "user") is None


def test_hidden_content_beside_captured_calls_is_marked() -> None:
    parts = [{"type": "text"}, {"type": "tool_call", "id": "c9", "name": "get_weather"}]
    found = messages_of([{"role": "user", "parts": [{"type": "text"}]}, {"role": "assistant", "parts": parts}], "user")
    assert found == (
        Message("user", (NOT_CAPTURED,)),
        Message("assistant", (NOT_CAPTURED, ToolRequest("get_weather", None, "c9"))),
    )
    assert found[0].hidden
    assert found[1].hidden


def test_an_empty_text_is_captured() -> None:
    found = messages_of([{"role": "assistant", "content": ""}], "assistant")
    assert found == (Message("assistant", (Text(""),)),)
    assert not found[0].hidden


def test_tool_calls_without_text_are_not_marked_as_hidden() -> None:
    found = messages_of(
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "c9", "function": {"name": "f"}}]}], "user"
    )
    assert found == (Message("assistant", (ToolRequest("f", None, "c9"),)),)


@pytest.mark.parametrize("text", ["Weather in Oslo?", "[draft] hello", "{name}, hi", "42", '{"answer": 42}', "[1, 2"])
def test_plain_text_is_one_message(text: str) -> None:
    assert messages_of(text, "assistant") == (Message("assistant", (Text(text),)),)


def test_loose_blocks_are_one_message() -> None:
    assert messages_of('[{"text": "Weather in"}, {"text": "Oslo?"}]', "user") == (
        Message("user", (Text("Weather in"), Text("Oslo?"))),
    )


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Four."}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Four."}]}, "finish_reason": "stop"}]},
        {
            "generations": [
                [
                    {
                        "text": "Four.",
                        "message": {"kwargs": {"content": "Four."}, "id": ["AIMessage"], "finish_reason": 0},
                    }
                ]
            ]
        },
        {"role": "assistant", "content": "Four."},
        {"role": "assistant", "content": {"message": "Four.", "finish_reason": "stop"}},
        {"role": "assistant", "content": {"content": '[{"text": "Four."}]'}},
    ],
)
def test_response_bodies(body: dict[str, Any]) -> None:
    found = messages_of(json.dumps(body), "assistant")
    assert found is not None
    assert [(message.role, message.parts) for message in found] == [("assistant", (Text("Four."),))]


def test_finish_reasons() -> None:
    body: dict[str, Any] = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "x"}}]}
    assert [message.finish_reason for message in messages_of(body, "assistant") or ()] == ["stop"]
    body = {"role": "assistant", "content": "x", "stop_reason": "end_turn"}
    assert [message.finish_reason for message in messages_of(body, "assistant") or ()] == ["end_turn"]


def test_arguments_that_do_not_parse_stay_text() -> None:
    found = messages_of(
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a": '}}]}], "user"
    )
    assert found == (Message("assistant", (ToolRequest("f", '{"a": '),)),)


def test_a_truncated_list_keeps_whole_messages_and_the_beginning_of_the_last() -> None:
    text = json.dumps(OTEL)
    found, cut = read_messages(text[: text.index("look.")], "user")
    assert cut
    assert found == (ASK, Message("assistant", (Text("I "), NOT_CAPTURED)))


def test_truncated_arguments_and_results_are_not_captured() -> None:
    text = json.dumps(OTEL)
    found, _ = read_messages(text[: text.index('slo"}}')], "user")
    assert found == (ASK, Message("assistant", (Text("I look."), ToolRequest("get_weather", None, "c9"), NOT_CAPTURED)))
    found, _ = read_messages(text[: text.index("temp_c") + 9], "user")
    assert found == (*RUN[:2], Message("tool", (ToolResponse(None, "c9"), NOT_CAPTURED)))


def test_messages_truncated_before_any_content_are_not_captured() -> None:
    assert read_messages('[{"ro', "user") == (None, True)


@pytest.mark.parametrize(
    "value",
    [
        "Be brief.",
        '[{"type": "text", "content": "Be brief."}]',
        [{"type": "text", "content": "Be brief."}],
        {"text": "Be brief."},
        '[{"role": "system", "parts": [{"type": "text", "content": "Be brief."}]}]',
        {"role": "system", "parts": [{"text": "Be brief."}]},
        '"Be brief."',
    ],
)
def test_system_text(value: Any) -> None:
    assert system_text(value) == "Be brief."


@pytest.mark.parametrize("value", [None, "", "[]", "<elided>", "{}", [{"type": "text"}]])
def test_system_text_is_none_for_empty_and_placeholder_values(value: Any) -> None:
    assert system_text(value) is None


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("place", ["arguments", "part", "member", "role"])
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_messages_with_any_member_nested_too_deep_are_not_read(role: str, place: str, fits: bool) -> None:
    above = {"arguments": 4, "part": 3, "member": 2, "role": 2}[place]
    deep = _nested(MAX_DEPTH - above + (not fits))
    call: Any = {"type": "tool_call", "id": "c9", "name": "get_weather", "arguments": {}}
    item: dict[str, Any] = {"role": role, "parts": [call]}
    if place == "arguments":
        call["arguments"] = deep
    elif place == "part":
        item["parts"].append(deep)
    else:
        item[place] = deep
    assert (messages_of(json.dumps([item, item]), role) is not None) == fits


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c9", "content": "no", "is_error": True}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c9", "content": [{"text": "no"}], "status": "error"}}],
        },
        {"role": "tool", "tool_call_id": "c9", "content": "no", "status": "error"},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c9", "response": "no", "isError": True}]},
    ],
)
def test_a_tool_result_keeps_its_error_flag(message: dict[str, Any]) -> None:
    found = messages_of([message], "user")
    assert found is not None
    [answer] = found[0].tool_responses
    assert (answer.id, answer.result) == ("c9", {"content": "no", "is_error": True})


def test_reasoning_of_langchain_messages_is_read() -> None:
    kwargs = {"content": "", "additional_kwargs": {"reasoning_content": "look out"}}
    found = messages_of([{"lc": 1, "id": ["langchain_core", "messages", "AIMessage"], "kwargs": kwargs}], "assistant")
    assert found is not None
    assert Reasoning("look out") in found[0].parts


def test_a_reasoning_summary_is_read_if_the_content_is_empty() -> None:
    block = {"type": "reasoning", "content": [], "summary": [{"type": "summary_text", "text": "look out"}]}
    assert messages_of([block], "assistant") == (Message("assistant", (Reasoning("look out"),)),)


@pytest.mark.parametrize("encode", [list, json.dumps])
def test_a_list_of_messages_each_as_json(encode: Callable[[list[str]], object]) -> None:
    texts = [
        '{"role": "user", "parts": [{"type": "text", "content": "hi"}]}',
        '{"role": "assistant", "content": "hello"}',
    ]
    assert read_messages(encode(texts), "user") == (
        (Message("user", (Text("hi"),)), Message("assistant", (Text("hello"),))),
        False,
    )
    assert messages_of({"messages": encode(texts[:1])}, "user") == (Message("user", (Text("hi"),)),)
    found, cut = read_messages(encode([texts[0], texts[1][:-4] + "...[truncated]"]), "user")
    assert found is not None
    assert (found[0].text, found[1].role, cut) == ("hi", "assistant", True)


def test_texts_that_are_no_messages_stay_unchanged() -> None:
    texts = ['{"city": "Oslo"}', "plain", '{"role": "admin"}']
    assert messages_of(texts, "user") == tuple(Message("user", (Text(text),)) for text in texts)


def test_parts_encoded_as_json_are_read() -> None:
    part = '{"type": "text", "content": "hi"}'
    assert messages_of([{"role": "user", "parts": [part]}], "user") == (Message("user", (Text("hi"),)),)
    blocks = '[{"type": "text", "text": "hi"}]'
    assert messages_of([{"role": "user", "content": blocks}], "user") == (Message("user", (Text("hi"),)),)
    answer = '{"type": "refund", "text": "hi"}'
    assert messages_of([{"role": "assistant", "content": answer}], "user") == (Message("assistant", (Text(answer),)),)

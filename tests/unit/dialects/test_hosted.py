"""Provider-run tool calls in every form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects._messages import messages_of
from pandaeval_otel.model import Part, Text, ToolRequest, ToolResponse
from tests.unit.dialects.composed import seen

WORDS = {"type": "text", "text": "Aker won."}
QUERY = {"query": "ferry race"}
PAGES = [{"type": "web_search_result", "title": "Aker wins", "url": "https://races.example", "encrypted_content": "x"}]


def parts(*blocks: Any) -> tuple[Part, ...]:
    found = messages_of([{"role": "assistant", "content": [*blocks]}], "assistant")
    assert found is not None
    (message,) = found
    return message.parts


def asked(name: str, arguments: Any, call_id: str) -> ToolRequest:
    return ToolRequest(name, arguments, call_id, hosted=True)


@pytest.mark.parametrize(
    ("block", "request_", "result"),
    [
        (
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", **QUERY}},
            asked("web_search_call", {"type": "search", **QUERY}, "ws_1"),
            None,
        ),
        (
            {
                "type": "mcp_call",
                "id": "mcp_1",
                "name": "find_race",
                "server_label": "sports",
                "arguments": '{"year": 2026}',
                "output": "Aker",
                "error": None,
            },
            asked("find_race", {"year": 2026}, "mcp_1"),
            ToolResponse("Aker", "mcp_1", "find_race"),
        ),
        (
            {"type": "mcp_call", "id": "mcp_2", "name": "find_race", "arguments": "{}", "error": "closed"},
            asked("find_race", {}, "mcp_2"),
            ToolResponse({"content": "closed", "is_error": True}, "mcp_2", "find_race"),
        ),
        (
            {
                "type": "code_interpreter_call",
                "id": "ci_1",
                "code": "print(1)",
                "container_id": "cntr_1",
                "outputs": [{"type": "logs", "logs": "1"}],
            },
            asked("code_interpreter_call", {"code": "print(1)"}, "ci_1"),
            ToolResponse([{"type": "logs", "logs": "1"}], "ci_1", "code_interpreter_call"),
        ),
        (
            {"type": "file_search_call", "id": "fs_1", "queries": ["a"], "status": "completed", "results": None},
            asked("file_search_call", {"queries": ["a"]}, "fs_1"),
            None,
        ),
        (
            {
                "type": "server_tool_call",
                "id": "m1",
                "name": "find_race",
                "server_tool_call": {
                    "type": "mcp",
                    "arguments": '{"year": 2026}',
                    "output": "Aker",
                    "status": "completed",
                },
            },
            asked("find_race", {"year": 2026}, "m1"),
            ToolResponse("Aker", "m1", "find_race"),
        ),
        (
            {"type": "server_tool_call", "id": "w1", "server_tool_call": {"type": "web_search", **QUERY}},
            asked("web_search", QUERY, "w1"),
            None,
        ),
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": QUERY},
            asked("web_search", QUERY, "srvtoolu_1"),
            None,
        ),
        (
            {
                "type": "tool-call",
                "toolCallId": "t1",
                "toolName": "web_search",
                "input": QUERY,
                "providerExecuted": True,
            },
            asked("web_search", QUERY, "t1"),
            None,
        ),
        (
            {"type": "tool_call", "id": "p1", "name": "web_search", "builtin": True, "arguments": QUERY},
            asked("web_search", QUERY, "p1"),
            None,
        ),
        (
            {"type": "tool_use", "id": "srvtoolu_2", "name": "web_search", "input": QUERY},
            asked("web_search", QUERY, "srvtoolu_2"),
            None,
        ),
        (
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            asked("code_execution", {"language": "PYTHON", "code": "print(1)"}, ""),
            None,
        ),
    ],
)
def test_hosted_tool_calls_are_read(block: dict[str, Any], request_: ToolRequest, result: ToolResponse | None) -> None:
    assert parts(block, WORDS) == (request_, *([result] if result else []), Text("Aker won."))


@pytest.mark.parametrize(
    ("block", "result"),
    [
        (
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": PAGES},
            ToolResponse(PAGES, "s1"),
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s1",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
            ToolResponse({"content": "max_uses_exceeded", "is_error": True}, "s1"),
        ),
        (
            {"type": "mcp_tool_result", "tool_use_id": "m1", "content": [{"type": "text", "text": "Aker"}]},
            ToolResponse("Aker", "m1"),
        ),
        (
            {
                "type": "server_tool_call_response",
                "id": "s1",
                "server_tool_call_response": {"type": "web_search", "content": PAGES},
            },
            ToolResponse(PAGES, "s1"),
        ),
        (
            {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": "Aker"},
            ToolResponse("Aker", "s1"),
        ),
        (
            {
                "type": "tool_call_response",
                "id": "p1",
                "name": "mcp_server:sports",
                "builtin": True,
                "result": {"error": None, "output": "Aker"},
            },
            ToolResponse("Aker", "p1", "mcp_server:sports"),
        ),
        (
            {"type": "tool_call_response", "id": "p1", "builtin": True, "result": {"status": "completed"}},
            None,
        ),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ToolResponse("1", "", "code_execution"),
        ),
        (
            {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "NameError"}},
            ToolResponse({"content": "NameError", "is_error": True}, "", "code_execution"),
        ),
    ],
)
def test_hosted_tool_results_are_read(block: dict[str, Any], result: ToolResponse | None) -> None:
    assert parts(block, WORDS) == (*([result] if result else []), Text("Aker won."))


def test_a_tool_call_of_the_application_is_not_marked_as_hosted() -> None:
    (part,) = parts({"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": QUERY})
    assert part == ToolRequest("web_search", QUERY, "toolu_1")


def test_items_of_a_response_keep_their_order() -> None:
    """OpenAI's Responses API."""
    items = [
        {"type": "message", "role": "user", "content": "Who won?"},
        {"type": "mcp_call", "id": "mcp_1", "name": "find_race", "arguments": "{}", "output": "Aker"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Aker won."}]},
        {"type": "message", "role": "user", "content": "Thanks!"},
    ]
    found = messages_of(items, "user") or ()
    assert [message.role for message in found] == ["user", "assistant", "assistant", "user"]
    assert [type(part) for part in found[1].parts] == [ToolRequest, ToolResponse]


WEB = {"webSearchQueries": ["ferry race"], "groundingChunks": [{"web": {"uri": "https://a.example", "title": "a"}}]}
PASSAGE = {"title": "rules.md", "text": "At most 12 people."}
FILES = {"retrieval_queries": ["people"], "grounding_chunks": [{"retrieved_context": PASSAGE}]}


@pytest.mark.parametrize(
    ("key", "told", "search"),
    [
        ("groundingMetadata", WEB, (asked("google_search", {"queries": ["ferry race"]}, ""),)),
        (
            "grounding_metadata",
            FILES,
            (asked("file_search", {"queries": ["people"]}, ""), ToolResponse([PASSAGE], "", "file_search")),
        ),
        ("groundingMetadata", {}, ()),
        ("groundingMetadata", "lost", ()),
    ],
)
def test_gemini_searches_are_read_from_grounding_metadata(key: str, told: Any, search: tuple[Part, ...]) -> None:
    answer = {"content": {"role": "model", "parts": [{"text": "Aker won."}]}, "finishReason": "STOP", key: told}
    found = messages_of({"candidates": [answer]}, "assistant")
    assert found is not None
    assert found[0].parts == (*search, Text("Aker won."))


def test_a_flattened_answer_is_completed_from_the_raw_response() -> None:
    """OpenInference flattens known parts only."""
    answer = {"content": {"role": "model", "parts": [{"text": "Aker won."}]}, "groundingMetadata": WEB}
    span = seen(
        {
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": "Aker won.",
            "output.value": json.dumps({"candidates": [answer]}),
        }
    )
    parts_read = [part for message in span.output or () for part in message.parts]
    assert parts_read == [asked("google_search", {"queries": ["ferry race"]}, ""), Text("Aker won.")]

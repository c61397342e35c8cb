"""Neatlogs."""

from __future__ import annotations

import json

from pandaeval_otel.model import Kind, ToolDefinition, Usage
from tests.unit.dialects.composed import ASK, CALL, SCHEMA, seen, texts


def test_model_call() -> None:
    llm = {
        "span.kind": "llm",
        "llm.model_name": "m-1",
        "llm.input_messages.0.role": "user",
        "llm.input_messages.0.content": ASK.text,
        "llm.output_messages.0.role": "assistant",
        "llm.tool_calls.0.id": CALL.id,
        "llm.tool_calls.0.name": CALL.name,
        "llm.tool_calls.0.arguments": json.dumps(CALL.arguments),
        "llm.tools.0.name": "look",
        "llm.tools.0.definition": json.dumps({"type": "function", "function": {"name": "look", "parameters": SCHEMA}}),
        "llm.token_count.prompt": 7,
        "llm.token_count.completion": 2,
        "llm.token_count.cache_read": 3,
    }
    found = seen({f"neatlogs.{key}": value for key, value in llm.items()})
    assert (found.kind, found.request_model, found.usage) == (Kind.LLM, "m-1", Usage(7, 2, 3))
    assert texts(found.input) == [("user", ASK.text)]
    assert found.output is not None
    assert found.output[0].tool_requests == (CALL,)
    assert found.tools == (ToolDefinition("look", "", SCHEMA),)

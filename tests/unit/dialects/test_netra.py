"""Netra."""

from __future__ import annotations

from pandaeval_otel.model import Captured, Kind
from tests.unit.dialects.composed import ASK, CALL, SAID, seen, texts

BASE = {"netra.session_id": "talk-1", "netra.user_id": "u1", "netra.agent.name": "desk"}


def test_run_and_tool() -> None:
    found = seen({**BASE, "netra.span.type": "AGENT", "input": f'{{"question": "{ASK.text}"}}', "output": SAID})
    assert (found.kind, found.agent_name, found.user_id) == (Kind.AGENT, "desk", "u1")
    assert texts(found.input) + texts(found.output) == [("user", ASK.text), ("assistant", SAID)]
    tool = {"netra.span.type": "TOOL", "netra.task.name": "look", "input": '{"city": "Oslo"}', "output": '{"t": 4}'}
    found = seen({**BASE, **tool})
    assert (found.tool_name, found.arguments, found.result) == ("look", Captured({"city": "Oslo"}), Captured({"t": 4}))
    assert found.session_ids == ((4, "talk-1"),)


def test_a_completion_with_only_a_finish_reason_is_merged_into_the_last_message() -> None:
    made = {
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "I look.",
        "gen_ai.completion.1.role": "assistant",
        "gen_ai.completion.1.content": '{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
        "gen_ai.completion.1.tool_call_id": "c9",
        "gen_ai.completion.2.finish_reason": "tool_calls",
    }
    output = seen({**BASE, "llm.request.type": "chat", **made}).output or ()
    assert [(message.text, message.tool_requests) for message in output] == [("I look.", ()), ("", (CALL,))]
    assert output[-1].finish_reason == "tool_calls"

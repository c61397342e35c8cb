"""Inputs that once took more than linear time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.hostile.random_traces import agent_span, chat_span, say, tool_span

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SlowInput:
    """``spans`` makes a trace; ``judged``: the judge's question was slow."""

    spans: Callable[[], list[Span]]
    judged: bool = False


def _calls_marked_in_a_text() -> list[Span]:
    step = chat_span(2, "Done.")
    text = "[tool: ]" * (MEGABYTE // 8) + "x]"
    del step.attributes[:]
    say(step, "mastra.span.type", "model_generation")
    say(step, "input", json.dumps({"messages": [{"role": "assistant", "content": text}]}))
    say(step, "output", json.dumps({"text": "Done."}))
    return [agent_span(), step]


def _beginnings_of_code() -> list[Span]:
    return [agent_span(), chat_span(2, "<code>" * (MEGABYTE // 6)), chat_span(3, "Done.")]


def _beginnings_of_messages_in_code() -> list[Span]:
    code = json.dumps({"code": "x = 1\n" + "print " * 3_400 + "()!"})
    calls = [_failing(number, code, "NameError: x") for number in range(2, 8)]
    return [agent_span(), *calls, chat_span(8, "Done.")]


def _a_fence_that_does_not_end() -> list[Span]:
    """An unclosed fence as long as judge and coding agent accept."""
    tool = tool_span(2)
    say(tool, "gen_ai.tool.call.result", "«" + " " * 400_000)
    return [agent_span(), tool, chat_span(3, "«" + " " * 14_000)]


def _one_number_everywhere() -> list[Span]:
    number = "1" * 190_000
    agent, tool = agent_span(), tool_span(2)
    asked = [{"role": "user", "parts": [{"type": "text", "content": number}]}]
    say(agent, "gen_ai.input.messages", json.dumps(asked))
    say(tool, "gen_ai.tool.call.arguments", json.dumps({"q": number}))
    say(tool, "gen_ai.tool.call.result", number)
    return [agent, tool, chat_span(3, number)]


def _errors_of_dashes() -> list[Span]:
    calls = [_failing(number, "{}", "-a" * 2_000) for number in range(2, 52)]
    return [agent_span(), *calls, chat_span(52, "Done.")]


def _a_thought_of_empty_lines() -> list[Span]:
    return [agent_span(), chat_span(2, "\n" * 20_000), tool_span(3), chat_span(4, "Done.")]


def _calls_in_calls() -> list[Span]:
    calls = [tool_span(number, number - 1) for number in range(2, 4_802)]
    return [agent_span(), *calls, chat_span(4_802, "Done.")]


def _code_that_fails_in_other_words() -> list[Span]:
    calls = []
    for number in range(2, 4_802):
        code = f"order_{number % 7} = find('shoe {number}', {number})\nprint(order_{number % 7}, red_{number})"
        calls.append(_failing(number, json.dumps({"code": code}), f"NameError: name 'red_{number}' is not defined"))
    return [agent_span(), *calls, chat_span(4_802, "Done.")]


def _failing(number: int, arguments: str, error: str) -> Span:
    span = tool_span(number)
    span.name = "execute_tool python_interpreter"
    say(span, "gen_ai.tool.name", "python_interpreter")
    say(span, "gen_ai.tool.call.arguments", arguments)
    say(span, "gen_ai.tool.call.result", error)
    span.status.code, span.status.message = 2, error
    return span


SLOW_INPUTS: Mapping[str, SlowInput] = {
    "calls marked in a text": SlowInput(_calls_marked_in_a_text),
    "beginnings of code": SlowInput(_beginnings_of_code),
    "beginnings of messages in code": SlowInput(_beginnings_of_messages_in_code),
    "a fence that does not end": SlowInput(_a_fence_that_does_not_end, judged=True),
    "one number everywhere": SlowInput(_one_number_everywhere),
    "errors of dashes": SlowInput(_errors_of_dashes),
    "a thought of empty lines": SlowInput(_a_thought_of_empty_lines),
    "calls in calls": SlowInput(_calls_in_calls),
    "code that fails in other words": SlowInput(_code_that_fails_in_other_words),
}
"""Each by its name."""

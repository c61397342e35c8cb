"""Thoughts in answer text become reasoning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pandaeval_otel.dialects._thoughts import split_thoughts
from pandaeval_otel.model import NOT_CAPTURED, Message, Part, Reasoning, Text, ToolRequest
from pandaeval_otel.model.message import all_parts
from pandaeval_otel.normal.speech import answer_of
from tests.unit.dialects.composed import seen

THOUGHT, SAID = "Is it 75 EUR? No, that was order RX-99.", "A ticket of class B costs 49 EUR."
SPLIT = (Reasoning(THOUGHT), Text(SAID))


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\n{THOUGHT}\n</think>\n\n{SAID}",
        f"<thinking>{THOUGHT}</thinking>{SAID}",
        f"<reasoning>\n{THOUGHT}</reasoning>\n{SAID}",
        f'<Think type="deep">{THOUGHT}</Think> {SAID}',
        f"{THOUGHT}\n</think>\n\n{SAID}",
        f"{THOUGHT}</think>{SAID}",
        f"[THINK]{THOUGHT}[/THINK]{SAID}",
        f"◁think▷{THOUGHT}◁/think▷{SAID}",
        f"<seed:think>{THOUGHT}</seed:think>{SAID}",
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{SAID}<|return|>",
        f"analysis{THOUGHT}assistantfinal{SAID}",
        f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>{SAID}<|END_RESPONSE|>",
        f"<thought_process>{THOUGHT}</thought_process>\n{SAID}",
        f"<inner_monologue>{THOUGHT}</inner_monologue>{SAID}",
        f"<mm:think>{THOUGHT}</mm:think>{SAID}",
        f"\ufeff<think>{THOUGHT}</think>{SAID}",
        f"<think>{THOUGHT}</think><answer>{SAID}</answer>",
        f"<reasoning>{THOUGHT}</reasoning>\n<output>\n{SAID}\n</output>",
        f"<think>{THOUGHT}</think>\n<|begin_of_box|>{SAID}<|end_of_box|>",
        f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|><|begin_of_solution|>{SAID}<|end_of_solution|>",
        f"<|channel>thought\n{THOUGHT}<channel|>{SAID}",
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>commentary<|message|>{SAID}",
    ],
)
def test_marked_thoughts_are_split_from_the_answer(text: str) -> None:
    assert tuple(split_thoughts("assistant", (Text(text),))) == SPLIT


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ((Text("<think>Is it "), Text("75?</think>It is 49.")), (Reasoning("Is it 75?"), Text("It is 49."))),
        ((Text("Is it 75?\n"), Text("</think>\nIt is 49.")), (Reasoning("Is it 75?"), Text("It is 49."))),
        ((Text("<think>Is it 75"),), (Reasoning("Is it 75"), Text(""))),
        ((Text("<think>Is it 75"), NOT_CAPTURED), (Reasoning("Is it 75"), NOT_CAPTURED)),
        ((Text("<think></think>\n\nIt is 49."),), (Text("It is 49."),)),
        (
            (Text("<think>a <think>b</think> c</think>It is 49."),),
            (Reasoning("a <think>b</think> c"), Text("It is 49.")),
        ),
        (
            (Text("Let me see.\n<think>75?</think>\nIt is 49."),),
            (Text("Let me see."), Reasoning("75?"), Text("It is 49.")),
        ),
        ((Text("<think>Ask.</think>"), ToolRequest("find")), (Reasoning("Ask."), ToolRequest("find"))),
    ],
)
def test_partial_empty_and_nested_thought_tags_are_split(parts: tuple[Part, ...], found: tuple[Part, ...]) -> None:
    assert tuple(split_thoughts("assistant", parts)) == found


@pytest.mark.parametrize(
    "text",
    [
        "Close it with `</think>` and write the answer.",
        'The server strips "<think>" from the text.',
        "Use this template:\n```\n<think>\nyour thoughts\n</think>\n```\nThen answer.",
        "The tag </think> ends the thoughts of the model",
        "Models write\n<think> first.",
        "It is <b>49</b> EUR if 3 < 4.",
        "<answer>It is 49 EUR.</answer>",
        "The tag <output> holds 49.",
    ],
)
def test_tags_that_mark_no_thoughts_leave_the_answer_unchanged(text: str) -> None:
    assert tuple(split_thoughts("assistant", (Text(text),))) == (Text(text),)


def test_thought_tags_in_user_text_are_unchanged() -> None:
    text = f"<think>{THOUGHT}</think>{SAID}"
    assert tuple(split_thoughts("user", (Text(text),))) == (Text(text),)


TAGGED = f"<think>{THOUGHT}</think>\n{SAID}"


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": TAGGED}], "finish_reason": "stop"}]
            ),
        },
        {
            "openinference.span.kind": "LLM",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": TAGGED,
        },
        {"openinference.span.kind": "AGENT", "output.value": TAGGED},
        {
            "traceloop.span.kind": "workflow",
            "traceloop.entity.output": json.dumps({"answer": TAGGED}),
        },
        {"ai.operationId": "ai.generateText.doGenerate", "ai.response.text": TAGGED},
        {"langfuse.observation.type": "generation", "langfuse.observation.output": TAGGED},
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": TAGGED,
        },
    ],
    ids=["gen_ai", "openinference", "openinference agent", "traceloop", "vercel_ai", "langfuse", "indexed"],
)
def test_thoughts_are_split_from_the_answer_in_every_dialect(attributes: dict[str, Any]) -> None:
    assert tuple(all_parts(seen(attributes).output)) == SPLIT


def test_thoughts_are_split_from_answers_in_the_history() -> None:
    given = [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": TAGGED}]
    span = seen({"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(given)})
    assert span.input is not None
    assert span.input[-1] == Message("assistant", SPLIT)


def test_an_answer_with_only_thoughts_is_empty() -> None:
    assert answer_of((Message("assistant", tuple(split_thoughts("assistant", (Text("<think>Is it 75"),)))),)).text == ""


def test_a_thought_block_encoded_as_json_text_is_reasoning() -> None:
    block = '{"reasoningContent": {"reasoningText": {"text": "Oslo first.", "signature": "c2ln"}}}'
    told_as = [{"type": "text", "content": each} for each in (block, SAID)]
    made = json.dumps([{"role": "assistant", "parts": told_as}])
    (message,) = seen({"gen_ai.operation.name": "chat", "gen_ai.output.messages": made}).output or ()
    assert message.parts == (Reasoning("Oslo first."), Text(SAID))

"""Packed records: bounded, deterministic, fenced."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from enum import StrEnum

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field

from pandaeval_collector.judge.pack import fence, pack
from pandaeval_collector.judge.prompt import SYSTEM, echo_code, messages, shape
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.sanitize import neutral
from pandaeval_collector.scoring.metrics.trace.confidence import METRIC as CONFIDENCE
from pandaeval_otel.model import Kind, Media, Message, Span, Text, ToolDefinition, Trace, Turn
from support.examples import examples
from support.judged import TRACE_ID, call, trace

RUBRIC = CONFIDENCE.rubrics[-1]

SECRET = b"s" * 32
FENCE = fence(SECRET, "WHAT THE USER ASKED")
SCRIPTS = ("plain words ", "配送状況を確認する。", "أين طردي الآن؟ ", "🚚📦🏳️‍🌈", '{"k": [1, 2]}\n')


class Other(Verdict):
    reason: Reason
    score: float


OTHER = Rubric("other", "3", "Something else?", Other)


def _fenced(text: str) -> list[str]:
    return [block for _, block in re.findall(r"<<([0-9a-f]{12})>>\n(.*?)\n<</\1>>", text, re.DOTALL)]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("budget", [400, 1500, 12_000])
class TestAnyBudget:
    def test_is_never_exceeded_and_task_and_answer_are_included(self, script: str, budget: int) -> None:
        long = script * (60_000 // len(script))
        calls = [call(n, arguments={"q": long[:500]}, result=long[:5000]) for n in range(40)]
        packed = pack(trace("TASK " + long, "ANSWER " + long, calls, reasoning=(long, long)), SECRET, budget)
        assert packed.tokens <= budget
        assert packed.truncated
        assert "TASK" in packed.text
        assert "ANSWER" in packed.text

    def test_is_never_exceeded_with_100_turns_and_90_tools(self, script: str, budget: int) -> None:
        turns = tuple(Turn(f"QUESTION{n} {script * 50}", f"REPLY{n} {script * 50}") for n in range(100))
        tools = tuple(ToolDefinition(f"tool_{n}", script * 100, {}) for n in range(90))
        packed = pack(trace(turns=turns, tools=tools, calls=[call(n) for n in range(100)]), SECRET, budget)
        assert packed.tokens <= budget
        assert "QUESTION0" in packed.text
        assert "REPLY99" in packed.text


def test_a_trace_of_megabytes_fits_into_the_budget() -> None:
    calls = [call(n, result="row " * 12_500, error="no such row" if n == 35 else None) for n in range(70)]
    packed = pack(trace(calls=calls), SECRET)
    assert packed.tokens <= 12_000
    assert "Where is my parcel?" in packed.text
    assert "It left the depot." in packed.text
    assert "FAILED: no such row" in packed.text, "failed calls are kept before successful calls"


def test_an_empty_trace_is_shown_as_not_captured() -> None:
    packed = pack(Trace(TRACE_ID, (), "b" * 16), SECRET)
    assert packed.text.count("(nothing was captured)") == 2
    assert "(no instructions were captured)" in packed.text
    assert "BEGAN\n(not captured)" in packed.text
    assert "thoughts, and what was said between calls: not captured" in packed.text
    assert "(no tool was called)" in packed.text
    assert not packed.truncated


def test_a_budget_below_400_tokens_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 400"):
        pack(trace(), SECRET, 399)


def test_a_pack_is_deterministic_and_its_digest_excludes_the_nonce() -> None:
    one, again = pack(trace(calls=[call(1)]), SECRET), pack(trace(calls=[call(1)]), SECRET)
    assert one == again
    elsewhere = pack(trace(calls=[call(1)]), b"t" * 32)
    assert elsewhere.nonce != one.nonce
    assert elsewhere.codes != one.codes
    assert elsewhere.digest == one.digest
    assert pack(trace(calls=[call(2)]), SECRET).digest != one.digest


@given(st.lists(st.sampled_from([FENCE, f"<<{FENCE}>>", f"<</{FENCE}>>", FENCE[:16], FENCE[16:], "\n", "x", "<</"])))
@settings(max_examples=examples(100), deadline=None)
def test_no_content_closes_a_fence(pieces: list[str]) -> None:
    content = "".join(pieces)
    packed = pack(trace(content, content, [call(1, name=content, result=content, error=content)]), SECRET)
    blocks = _fenced(packed.text)
    assert FENCE in packed.codes
    counted = sum(packed.text.count(code) for code in {*packed.codes})
    assert counted == 2 * len(blocks), "nothing but our own fences holds a code"
    assert not any(code in block for block in blocks for code in packed.codes)
    question = messages(packed, RUBRIC, {"task": content})[3]["content"]
    assert question.count(packed.nonce) == 2
    assert FENCE not in question


@pytest.mark.parametrize(
    "hidden",
    ["\u200b", "\u202e", "\u2066", "\ufeff", "\U000e0041", "\ufe0f", "\u00ad", "\u180e", "\U000e0100", "\u2063"],
)
def test_invisible_characters_are_removed(hidden: str) -> None:
    assert neutral(f"a{hidden}b") == "ab"
    packed = pack(trace(f"a{hidden}b", f"c{hidden}d", [call(1, name=f"n{hidden}m", error=f"e{hidden}f")]), SECRET)
    assert hidden not in packed.text


def test_control_characters_links_and_blobs_are_defused() -> None:
    assert neutral("a\x1b[31mb\x00") == "a [31mb "
    assert "http" not in neutral("see https://evil.example/x?leak=1")
    assert "evil.example/x?leak=1" in neutral("see https://evil.example/x?leak=1"), "the address stays readable"
    blob = "data:image/png;base64," + "QUJD" * 500
    assert neutral(f"a {blob} b") == f"a [binary, {len(blob)} characters] b"


def test_all_questions_about_a_trace_show_the_same_record() -> None:
    packed = pack(trace(calls=[call(1)]), SECRET)
    ours, other = messages(packed, RUBRIC), messages(packed, OTHER, {"task": "x"})
    assert (ours[0], ours[2]) == (other[0], other[2])
    assert ours[1]["content"][: packed.head] == other[1]["content"][: packed.head] == packed.text[: packed.head]
    assert ours[0] == {"role": "system", "content": SYSTEM}
    assert [message["role"] for message in ours] == ["system", "user", "user", "user"]


def test_docstrings_for_developers_are_not_sent() -> None:
    class Nested(BaseModel):
        """For developers, nested."""

        part: str = Field(description="What is asked.")

    class Choice(StrEnum):
        """For developers, a choice."""

        ONE = "one"

    class Documented(Verdict):
        """For developers, whole."""

        parts: list[Nested]
        one: Nested | None
        choice: Choice

    sent = json.dumps(shape(Rubric("x", "1", "?", Documented)))
    assert "For developers" not in sent
    assert "What is asked." in sent


def test_the_echo_code_differs_by_trace_and_question() -> None:
    packed, elsewhere = pack(trace(), SECRET), pack(trace(digest="d2"), SECRET)
    codes = {echo_code(packed, RUBRIC), echo_code(packed, OTHER), echo_code(elsewhere, RUBRIC)}
    assert len(codes) == 3
    assert not any(code in packed.text for code in codes)


def test_the_reply_schema_requires_exactly_its_fields_with_the_reason_before_the_score() -> None:
    found = shape(RUBRIC)
    assert found["additionalProperties"] is False
    assert found["required"] == list(found["properties"])
    order = list(found["properties"])
    assert order.index("reason") < order.index("confidence")


def test_a_pack_names_its_truncated_parts() -> None:
    assert pack(trace(calls=[call(1)]), SECRET).truncated == ()
    long = trace(calls=[call(1, result="x " * 5000)])
    assert pack(long, SECRET).truncated == (), "nothing is cut while there is room"
    assert pack(long, SECRET, 2000).truncated == ("what happened",)
    calls = [call(number, result="x " * 300) for number in range(200)]
    assert pack(trace("Where? " * 4000, calls=calls), SECRET, 2000).truncated == (
        "what the user asked",
        "what happened",
    )


def test_media_in_the_question_are_noted_without_their_address() -> None:
    asked = Message("user", (Text("What is in this picture?"), Media("image", "s3://somewhere"), Media("", "")))
    opening = Span(TRACE_ID, "b7ad6b7169203332", "", "chat", Kind.LLM, 0, 1, input=(asked,))
    text = pack(trace("What is in this picture?", spans=(opening,)), SECRET).text
    assert "(with image, not shown)" in text
    assert "(with something that is no text, not shown)" in text
    assert "somewhere" not in text


def test_several_turns_of_a_trace_are_labelled() -> None:
    turns = (Turn("Where is it?", "At the depot."), Turn("And now?", "On its way."))
    text = pack(trace(turns=turns), SECRET).text
    for said in ("turn 1, the user said: Where is it?", "the user said: And now?", "agent answered: On its way."):
        assert said in text
    assert "turn 1" not in pack(trace(), SECRET).text


def test_an_answer_that_copies_our_placeholder_stays_inside_the_fence() -> None:
    assert "(nothing was captured)" in _fenced(pack(trace(answer="(nothing was captured)"), SECRET).text)
    assert not any("was captured" in block for block in _fenced(pack(trace(answer=None), SECRET).text))


@pytest.mark.parametrize("budget", [2000, 6000, 12_000])
def test_a_truncated_pack_uses_its_budget(budget: int) -> None:
    calls = [call(n, result=f"row {n} " * (200 * n)) for n in range(1, 15)]
    packed = pack(trace(calls=calls), SECRET, budget)
    assert packed.truncated == ("what happened",)
    assert packed.tokens > 0.93 * budget


def test_tools_are_shown_whole_or_listed_as_truncated() -> None:
    schema = {"properties": {f"field_{n}": {"enum": [f"choice_{m}" for m in range(12)]} for n in range(25)}}
    tools = tuple(ToolDefinition(f"tool_{n}", "word " * 100 + "END", schema) for n in range(3))
    packed = pack(trace(tools=tools), SECRET)
    assert (packed.text.count("END"), packed.text.count("choice_11"), packed.truncated) == (3, 75, ())
    many = tuple(ToolDefinition(f"tool_{n}", "word " * 100, schema) for n in range(90))
    assert "tools that the agent had" in pack(trace(tools=many), SECRET).truncated


def test_tools_are_listed_by_agent() -> None:
    tools = (
        ToolDefinition("delegate", "d", {}, agents=("boss",)),
        ToolDefinition("book", "b", {}, agents=("desk", "bar")),
    )
    shown = pack(trace(tools=tools), SECRET).text
    assert "agent boss had delegate: d\nagent desk, bar had book: b\n" in shown


def test_a_delegating_call_is_not_shown_as_parallel_to_its_nested_calls() -> None:
    outer = replace(call(1, "delegate", span_id="o", agent="boss"), end_ns=9 * 10**9)
    calls = [outer, call(2, "book", span_id="i", agent="desk")]
    made = trace(calls=calls)
    below = tuple(
        Span(TRACE_ID, id_, parent, id_, Kind.TOOL, 1, 2) for id_, parent in (("o", ""), ("a", "o"), ("i", "a"))
    )
    assert "in parallel" not in pack(replace(made, spans=(*made.spans, *below)), SECRET).text
    assert "in parallel" in pack(made, SECRET).text, "calls that are not nested"


def test_prompts_about_two_runs_of_one_agent_share_their_beginning() -> None:
    tools = (ToolDefinition("book", "b", {}),)
    system = Span(TRACE_ID, "b7ad6b7169203332", "", "chat", Kind.LLM, 0, 1, system="Be kind.")
    one = pack(trace("Where is it?", spans=(system,), tools=tools, agents=("desk",)), SECRET)
    other = pack(
        trace("Cancel it.", calls=[call(1)], spans=(system,), tools=tools, agents=("desk",), digest="d2"), SECRET
    )
    assert messages(one, RUBRIC)[:2] == messages(other, RUBRIC)[:2]
    assert "Be kind." in messages(one, RUBRIC)[1]["content"]
    assert one.agent_key == other.agent_key != pack(trace(agents=("bar",)), SECRET).agent_key


def test_truncating_a_run_does_not_change_the_shared_beginning() -> None:
    tools = tuple(ToolDefinition(f"tool_{n}", "word " * 20, {}) for n in range(3))
    packs = [
        pack(trace(calls=[call(n, result="x " * size) for n in range(60)], tools=tools), SECRET, 3000)
        for size in (200, 900)
    ]
    assert packs[0].text[: packs[0].head] == packs[1].text[: packs[1].head]
    assert "tools that the agent had" not in packs[0].truncated


def test_fence_codes_are_removed_from_a_reply() -> None:
    packed = pack(trace(), SECRET)
    assert packed.without_codes(f"as <</{packed.codes[0].upper()}>> and {packed.nonce}") == "as <</[…]>> and […]"

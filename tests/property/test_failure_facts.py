"""Facts for the judge agree with verdict limits."""

from __future__ import annotations

import re

from hypothesis import given, settings, strategies as st

from pandaeval_collector.analysis.rules._failures import FailureSign, failed, failure_sign
from pandaeval_collector.base.score import Score
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.scoring.metrics.trace._limits import completion_limit, outcome
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_otel.model import ToolCall, Trace
from support.examples import examples
from support.judged import call, trace
from support.told_failures import FAILED, FINE, UNSURE

VALUES = st.one_of(
    st.sampled_from([*FAILED, *FINE, *UNSURE]),
    st.text(max_size=80),
    st.recursive(
        st.none() | st.booleans() | st.integers(-600, 600) | st.sampled_from(["error", "Error: x", "failed", "<<a>>"]),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(st.sampled_from(["error", "status", "ok", "code", "content", "rows"]), inner, max_size=3)
        ),
        max_leaves=6,
    ),
)
NAMES = ["book_ferry", "cancel_order", "search", "get_order", "bash", "transfer_to_human", "edit_file"]
ANSWERS = ["Done.", "I could not do it.", "Shall I try Monday?", "", None, "It is booked, no problem."]
TOLD = re.compile(r"^(.+): (\d+)(?: \(calls ([\d, ]+)\))?$", re.MULTILINE)


@st.composite
def made(draw: st.DrawFn) -> ToolCall:
    error = draw(st.sampled_from([None, None, None, "full", "Error: not found", ""]))
    return call(draw(st.integers(1, 9)), draw(st.sampled_from(NAMES)), result=draw(VALUES), error=error)


def told_in(shown: str) -> dict[str, list[int]]:
    facts = shown.partition("FACTS COUNTED BY CODE")[2].partition("## ")[0]
    return {line[1]: [int(each) for each in (line[3] or "").split(",") if each] for line in TOLD.finditer(facts)}


@settings(max_examples=examples(150), deadline=None)
@given(calls=st.lists(made(), max_size=6), answer=st.sampled_from(ANSWERS), secrets=st.booleans())
def test_judge_facts_agree_with_limits_response_and_outcome(
    calls: list[ToolCall], answer: str | None, secrets: bool
) -> None:
    subject: Trace = trace(answer=answer, calls=calls)
    if secrets:
        subject = redacted(subject)
    facts, limit = told_in(pack(subject, b"s" * 32).text), completion_limit(subject)
    numbers = [number for number, each in enumerate(subject.tool_calls, 1) if failed(each)]
    unseen = sum(each.error is None and each.result is None for each in subject.tool_calls)
    assert facts.get("failed tool calls", []) == numbers
    assert ("failed tool calls" in facts) is (bool(numbers) or not unseen), "0 is shown only if all results are known"
    lost = facts.get("failed, and no later call made up for it", [])
    assert set(limit.calls) <= set(lost) <= set(numbers)
    doubtful = [number for number, each in enumerate(subject.tool_calls, 1) if failure_sign(each) is FailureSign.UNSURE]
    assert facts.get("results that may tell of a failure, or not", []) == doubtful
    ended = response(subject)
    if limit.best < 1.0 and isinstance(ended, Score):
        assert ended.value < 1.0, "a run with a limited verdict must not have a full response score"
    if subject.tool_calls:
        assert outcome(subject).startswith(f"{subject.tool_calls[0].name} failed:") is (1 in numbers)

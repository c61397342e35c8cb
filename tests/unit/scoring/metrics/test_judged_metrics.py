"""Judged metrics case by case."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.judge.invalid_replies import MOST_INVALID
from pandaeval_collector.scoring.metric import TraceMetric
from pandaeval_collector.scoring.metrics.trace._facts import has_meaningful_text
from pandaeval_collector.scoring.metrics.trace.argument_correctness import are_arguments_rejected
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli.metrics import whys
from pandaeval_otel.model import Kind, Message, Span, Text, ToolRequest, Trace, Turn
from support.judged import TRACE_ID, call, trace
from support.scripted_judge import GOOD, NOTHING_NAMED, RIGHT, ScriptedJudge, all_right

JUDGED = [each for each in registry().values() if each.kind == "llm" and each.level == "trace"]
NAMES = {
    "task_completion",
    "tool_correctness",
    "argument_correctness",
    "step_efficiency",
    "confidence",
    "plan_adherence",
    "plan_quality",
}
RUN = trace(calls=[call(1)], reasoning=("First I search, then I tell.",))
TALK = replace(RUN, turns=(*RUN.turns, Turn("And when does it come?", "On Monday.")))
"""With two messages, a judge decides which task applies."""
NOTHING = trace(None, None, tools=(), turns=(), input=None, output=None)
CRASHED = trace(answer=None, calls=[call(1)], error="boom", output=None)


def of(name: str) -> TraceMetric:
    return registry()[f"trace.{name}"]


async def ask(name: str, subject: Trace, **answers: Any) -> tuple[Finding | None, list[str]]:
    judge = ScriptedJudge(**answers)
    return await judge.finding(of(name), subject), judge.caller.asked


async def scored(name: str, subject: Trace, **answers: Any) -> Score:
    found, _ = await ask(name, subject, **answers)
    assert isinstance(found, Score), found
    return found


async def unscored(name: str, subject: Trace, **answers: Any) -> tuple[Why, list[str]]:
    found, asked = await ask(name, subject, **answers)
    assert isinstance(found, Unscored), found
    return found.why, asked


async def assumed(name: str, subject: Trace, **answers: Any) -> tuple[Assumed, list[str]]:
    found, asked = await ask(name, subject, **answers)
    assert isinstance(found, Assumed), found
    assert found.value == 1.0
    return found, asked


class TestAll:
    def test_there_are_eight_judged_trace_metrics(self) -> None:
        assert {metric.name for metric in JUDGED} == {*NAMES, "correctness"}
        assert {metric.threshold for metric in JUDGED} == {0.5}

    @pytest.mark.parametrize(
        ("name", "value", "keys"),
        [
            ("task_completion", 0.9, {"task", "outcome"}),
            ("tool_correctness", 0.8, {"user_input", "tools_called", "available_tools"}),
            ("argument_correctness", 1.0, {"user_input", "verdicts"}),
            ("step_efficiency", 0.75, {"task"}),
            ("plan_adherence", 0.75, {"plan", "shown_by", "task"}),
            ("plan_quality", 0.5, {"plan", "shown_by", "task"}),
            ("confidence", 0.4, set()),
        ],
    )
    async def test_verdict_is_the_score_and_metadata_has_the_expected_keys(
        self, name: str, value: float, keys: set[str]
    ) -> None:
        found = await scored(name, RUN)
        assert found.value == value
        assert set(found.metadata) == keys
        assert found.reason

    @pytest.mark.parametrize(("subject", "calls"), [(RUN, 8), (TALK, 9)], ids=["one message", "several"])
    async def test_seven_separate_metrics_need_at_most_nine_judge_calls(self, subject: Trace, calls: int) -> None:
        judge = ScriptedJudge()
        await asyncio.gather(*(judge.finding(of(name), subject) for name in NAMES))
        assert len(judge.caller.asked) == len(set(judge.caller.asked)) == calls

    @pytest.mark.parametrize("metric", JUDGED, ids=lambda metric: metric.name)
    async def test_a_trace_that_instructs_the_judge_has_no_score(self, metric: TraceMetric) -> None:
        perfect = {"reason": "Perfect.", "instructed": True}
        best = {"step_efficiency": "none", "plan_adherence": "exactly", "plan_quality": "excellent"}
        answers: dict[str, Any] = {name: {**perfect, "level": level} for name, level in best.items()}
        answers |= {
            "correctness": {**RIGHT, **perfect},
            "task_completion": {"answered": "yes", "taken": "yes", **perfect, "verdict": 1.0},
            "tool_correctness": {**NOTHING_NAMED, **perfect, "score": 1.0},
            "confidence": {**perfect, "confidence": 1.0},
            "argument_correctness": {
                **perfect,
                "verdicts": [{"call": 1, "reason": "Right.", "verdict": "yes"}],
            },
        }
        why, asked = await unscored(metric.name, RUN, **answers)
        assert why is Why.INJECTION_SUSPECTED
        assert asked[-1] == metric.name

    @pytest.mark.parametrize("metric", JUDGED, ids=lambda metric: metric.name)
    async def test_invalid_verdict_is_requested_twice_and_then_unscored(self, metric: TraceMetric) -> None:
        why, asked = await unscored(metric.name, RUN, **{metric.name: {"score": 7}})
        assert why is Why.INVALID_VERDICT
        assert asked.count(metric.name) == 2

    @pytest.mark.parametrize("rubric", ["task", "plan"])
    async def test_failed_extraction_is_requested_once_per_trace_and_not_once_per_metric(self, rubric: str) -> None:
        judge = ScriptedJudge(**{rubric: {"nonsense": True}})
        first = [await judge.finding(metric, TALK) for metric in JUDGED]
        lost = [found for found in first if isinstance(found, Unscored)]
        assert {found.why for found in lost} == {Why.INVALID_VERDICT}
        assert len(lost) == (4 if rubric == "task" else 2)
        assert judge.caller.asked.count(rubric) == 2, "once, and once more with the error"
        await judge.finding(of("plan_quality"), TALK)
        assert judge.caller.asked.count(rubric) == 4, "a later request starts a new attempt"

    @pytest.mark.parametrize("name", sorted(NAMES - {"argument_correctness"}))
    async def test_trace_without_content_is_unscored_without_a_judge_call(self, name: str) -> None:
        assert await unscored(name, NOTHING) == (Why.NO_CONTENT, [])

    @pytest.mark.parametrize("name", sorted(NAMES))
    async def test_secrets_of_the_trace_are_in_no_finding_and_no_prompt(self, name: str) -> None:
        key = "sk-proj-" + "a1B2" * 12
        leaky = trace(f"My key is {key}", f"Used {key}", [call(1, arguments={"api_key": key, "q": key})])
        judge = ScriptedJudge()
        assert key not in repr(await judge.finding(of(name), leaky))
        assert key not in "".join(judge.caller.questions)


class TestTaskCompletion:
    async def test_score_of_a_failed_run_without_an_answer_is_capped_below_half(self) -> None:
        found = await scored("task_completion", CRASHED)
        assert found.value == 0.49
        assert found.metadata["capped_by"] == "error_without_answer"
        assert "capped" in found.reason
        assert "The parcel was found." in found.reason

    @pytest.mark.parametrize(
        "subject", [trace(calls=[call(1)], error="boom"), trace(answer="", calls=[call(1)], output="")]
    )
    async def test_score_is_not_capped_if_there_is_an_answer_or_no_error(self, subject: Trace) -> None:
        found = await scored("task_completion", subject)
        assert found.value == 0.9
        assert "capped_by" not in found.metadata

    async def test_uncaptured_answer_is_no_content(self) -> None:
        assert await unscored("task_completion", trace(answer=None, calls=[call(1)])) == (Why.NO_CONTENT, [])

    async def test_verdict_below_the_cap_is_unchanged(self) -> None:
        found = await scored(
            "task_completion",
            CRASHED,
            task_completion={"answered": "no", "taken": "no", "reason": "No.", "verdict": 0.1},
        )
        assert found.value == 0.1
        assert "capped_by" not in found.metadata

    @pytest.mark.parametrize("answer", ["", " \n", ":", "…", "\u200b", None])
    async def test_blank_answer_is_never_sent_to_the_judge(self, answer: str | None) -> None:
        for name in ("task_completion", "step_efficiency"):
            assert await unscored(name, trace(answer=answer)) == (Why.NO_CONTENT, [])

    async def test_task_is_in_the_prompt_and_outcome_in_the_metadata(self) -> None:
        judge = ScriptedJudge()
        found = await judge.finding(of("task_completion"), RUN)
        assert judge.caller.asked == ["task_completion"]
        [question] = judge.caller.questions
        assert 'task: "Where is my parcel?"' in question
        assert "It left the depot." not in question, "the outcome is not repeated in the question"
        assert found is not None
        assert found.metadata["outcome"] == "search: ok. The agent answered: It left the depot."

    async def test_outcome_lists_failed_calls_found_documents_and_the_error(self) -> None:
        looked = Span(
            TRACE_ID, "d7ad6b7169203331", "", "retrieve", Kind.RETRIEVAL, 1, 2, documents=("Parcels: 9 EUR.",)
        )
        calls = [call(1, error="timeout"), call(2, result={"error": "closed"}), call(3, has_result=False)]
        found = await scored("task_completion", trace(calls=calls, spans=(looked,), error="boom"))
        assert found.metadata["outcome"] == (
            'search failed: timeout; search failed: {"error": "closed"}; search: (not captured); '
            "retrieve found: Parcels: 9 EUR. The run ended with an error: boom. "
            "The agent answered: It left the depot."
        )

    async def test_truncated_text_contains_no_part_of_a_secret(self) -> None:
        key = "sk-proj-" + "a1B2" * 12
        answer = "word " * 100 + "x" * 20 + " " + key + " word" * 1000
        found = await scored("task_completion", trace(answer=answer, output=answer, calls=[call(1, result=answer)]))
        assert "sk-proj" not in repr(found.metadata)

    @pytest.mark.parametrize("said", ["Yes, do it.", "word " * 200, None])
    async def test_judge_extracts_the_task_if_the_message_does_not_state_it(self, said: str | None) -> None:
        found, asked = await ask("task_completion", trace(said, calls=[call(1)]))
        assert asked == ["task", "task_completion"]
        assert found is not None
        assert found.metadata["task"] == "Find the parcel."

    async def test_trace_without_a_task_is_unscored(self) -> None:
        why, asked = await unscored("task_completion", TALK, task={"task": " "})
        assert why is Why.NO_CONTENT
        assert asked == ["task"]

    @pytest.mark.parametrize(
        ("answered", "taken", "value", "holds"),
        [
            ("yes", "yes", 1.0, True),
            ("yes", "yes", 0.4, False),
            ("yes", "no", 0.4, True),
            ("yes", "no", 0.5, False),
            ("yes", "unknown", None, True),
            ("yes", "unknown", 0.9, False),
            ("yes", "unknown", 0.0, False),
            ("yes", "yes", None, False),
            ("no", "yes", 0.74, True),
            ("no", "yes", 0.75, False),
            ("no", "no", 0.5, False),
            ("no", "unknown", 0.3, True),
            ("no", "unknown", None, True),
            ("rightly held back", "yes", 1.0, True),
            ("rightly held back", "no", 0.5, True),
            ("rightly held back", "yes", 0.4, False),
            ("unknown", "yes", None, True),
            ("unknown", "yes", 0.5, False),
        ],
    )
    async def test_score_that_contradicts_the_choices_before_it_is_rejected(
        self, answered: str, taken: str, value: float | None, holds: bool
    ) -> None:
        said = {"answered": answered, "taken": taken, "reason": "So it is.", "verdict": value}
        found, asked = await ask("task_completion", RUN, task_completion=said)
        if holds and value is not None:
            assert isinstance(found, Score)
            assert found.value == value
        else:
            assert isinstance(found, Unscored)
            assert found.why is (Why.INSUFFICIENT_EVIDENCE if holds else Why.INVALID_VERDICT)
        assert len(asked) == (1 if holds else 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("task_completion", {"answered": "unknown", "taken": "unknown", "verdict": None}),
        ("tool_correctness", {**NOTHING_NAMED, "score": None}),
        ("step_efficiency", {"level": None}),
        ("plan_adherence", {"level": None}),
        ("plan_quality", {"level": None}),
        ("confidence", {"confidence": None}),
        ("argument_correctness", {"verdicts": [{"call": 1, "reason": "Not captured.", "verdict": "unknown"}]}),
    ],
)
async def test_undecided_verdict_is_insufficient_evidence(name: str, said: dict[str, Any]) -> None:
    why, asked = await unscored(name, RUN, **{name: {"reason": "Nothing was captured.", **said}})
    assert why is Why.INSUFFICIENT_EVIDENCE
    assert asked.count(name) == 1
    assert Why.INSUFFICIENT_EVIDENCE in whys(of(name))


class TestToolCorrectness:
    async def test_run_without_calls_and_tools_is_assumed(self) -> None:
        found, asked = await assumed("tool_correctness", trace(tools=()))
        assert not asked
        assert found.metadata == {"user_input": "Where is my parcel?", "tools_called": [], "available_tools": []}

    @pytest.mark.parametrize(
        ("named", "score"),
        [
            ({}, 0.5),
            ({"missing": ["ask"]}, 1.0),
            ({"wrong": ["search"]}, 1.0),
            ({"excess": ["search"]}, None),
            ({"excess": ["book"]}, 0.75),
            ({"wrong": ["book"]}, 0.25),
        ],
    )
    async def test_score_that_contradicts_the_named_tools_is_rejected(
        self, named: dict[str, list[str]], score: float | None
    ) -> None:
        """A tool that was not called cannot be in excess or wrong."""
        said = {**NOTHING_NAMED, **named, "reason": "So it is.", "score": score}
        assert (await unscored("tool_correctness", RUN, tool_correctness=said))[0] is Why.INVALID_VERDICT

    async def test_metadata_names_missing_and_excess_tools(self) -> None:
        named = {"missing": ["ask"], "excess": ["search"], "wrong": []}
        found = await scored("tool_correctness", RUN, tool_correctness={**named, "reason": "So.", "score": 0.5})
        assert (found.metadata["missing"], found.metadata["excess"]) == (["ask"], ["search"])
        assert "wrong" not in found.metadata

    async def test_run_that_used_no_available_tool_is_judged(self) -> None:
        found = await scored("tool_correctness", trace())
        assert found.metadata["available_tools"] == [{"name": "search", "description": "Finds a parcel."}]

    async def test_calls_without_definitions_are_judged(self) -> None:
        found = await scored("tool_correctness", trace(calls=[call(1)], tools=()))
        assert found.metadata["tools_called"] == [{"name": "search", "parameters": {"q": 1}}]

    async def test_judge_extracts_the_user_input_only_if_the_message_is_missing(self) -> None:
        _, asked = await ask("tool_correctness", RUN)
        assert asked == ["tool_correctness"]
        found, asked = await ask("tool_correctness", trace(None, "It left.", [call(1)]))
        assert asked == ["task", "tool_correctness"]
        assert found is not None
        assert found.metadata["user_input"] == "Find the parcel."

    async def test_available_tools_without_a_captured_answer_are_no_content(self) -> None:
        assert await unscored("tool_correctness", trace(answer=None)) == (Why.NO_CONTENT, [])


def verdicts(*pairs: tuple[int, str]) -> dict[str, Any]:
    listed = [{"call": n, "reason": "right q" if v == "yes" else "wrong q", "verdict": v} for n, v in pairs]
    return {"verdicts": listed, "reason": "Overall."}


class TestArgumentCorrectness:
    async def test_run_without_calls_is_assumed(self) -> None:
        found, asked = await assumed("argument_correctness", trace())
        assert not asked
        assert found.metadata == {"user_input": "Where is my parcel?", "verdicts": []}

    async def test_score_is_the_share_of_yes_verdicts_and_ids_are_ignored(self) -> None:
        twins = trace(calls=[replace(call(n), id="x", span_id=f"s{n}") for n in (1, 2, 3)])
        given = verdicts((3, "yes"), (1, "yes"), (2, "no"))
        found = await scored("argument_correctness", twins, argument_correctness=given)
        assert found.value == 2 / 3
        assert found.metadata["verdicts"] == [
            {"call": 1, "verdict": "yes", "reason": "right q"},
            {"call": 2, "verdict": "no", "reason": "wrong q"},
            {"call": 3, "verdict": "yes", "reason": "right q"},
        ]
        assert found.span_ids == ("s2",)

    @pytest.mark.parametrize(
        "wrong",
        [
            verdicts((1, "yes")),
            verdicts((1, "yes"), (2, "yes"), (3, "yes")),
            verdicts((1, "yes"), (1, "yes")),
            verdicts((1, "yes"), (7, "yes")),
            verdicts(),
        ],
        ids=["one missing", "one too many", "one twice", "one that is none", "none"],
    )
    async def test_wrong_list_of_verdicts_is_requested_once_more_and_then_unscored(self, wrong: dict[str, Any]) -> None:
        two = trace(calls=[call(1), call(2)])
        why, asked = await unscored("argument_correctness", two, argument_correctness=wrong)
        assert why is Why.INVALID_VERDICT
        assert len(asked) == 2
        right = verdicts((1, "yes"), (2, "no"))
        assert (await scored("argument_correctness", two, argument_correctness=[wrong, right])).value == 0.5

    async def test_only_the_first_and_last_20_calls_are_judged_and_the_reason_shows_it(self) -> None:
        judge = ScriptedJudge()
        found = await judge.finding(of("argument_correctness"), trace(calls=[call(n) for n in range(1, 51)]))
        assert isinstance(found, Score)
        assert [each["call"] for each in found.metadata["verdicts"]] == [*range(1, 21), *range(31, 51)]
        assert found.coverage == 0.8
        assert "1-20, 31-50 of 50" in found.reason
        assert len(judge.caller.asked) == 1

    @pytest.mark.parametrize("sign", ["y", '"', "\\", "\n", "是"])
    async def test_forty_calls_with_long_arguments_are_all_listed(self, sign: str) -> None:
        long = [call(n, sign * 300, arguments={"q": sign * 5000}) for n in range(1, 41)]
        found = await scored("argument_correctness", trace(calls=long))
        assert len(found.metadata["verdicts"]) == 40

    async def test_undecided_calls_lower_the_coverage_but_not_the_score(self) -> None:
        three = trace(calls=[call(1), call(2), call(3)])
        given = verdicts((1, "yes"), (2, "unknown"), (3, "no"))
        found = await scored("argument_correctness", three, argument_correctness=given)
        assert (found.value, found.coverage) == (0.5, 2 / 3)
        assert "Undecided: calls 2." in found.reason

    @pytest.mark.parametrize("wrong", [0, 1, 10])
    async def test_fewer_than_half_of_the_calls_give_no_score_unless_most_are_wrong(self, wrong: int) -> None:
        answers = ["no"] * wrong + ["yes"] * (10 - wrong) + ["unknown"] * 30
        given = verdicts(*zip([*range(1, 21), *range(81, 101)], answers, strict=True))
        subject = trace(calls=[call(n) for n in range(1, 101)])
        found, _ = await ask("argument_correctness", subject, argument_correctness=given)
        assert found is not None
        assert "Calls 1-20, 81-100 of 100 were judged. Undecided: calls 11-20, 81-100." in found.reason
        if wrong == 10:
            assert isinstance(found, Score)
            assert (found.value, found.coverage) == (0.0, 0.1)
        else:
            assert isinstance(found, Unscored)
            assert (found.why, found.coverage) == (Why.INSUFFICIENT_EVIDENCE, 0.1)
            assert found.reason.startswith("too few calls were decided: 10 of 100. ")

    async def test_verdict_on_a_call_without_a_reason_is_invalid(self) -> None:
        silent = {"verdicts": [{"call": 1, "reason": "", "verdict": "yes"}], "reason": "Fine."}
        assert (await unscored("argument_correctness", RUN, argument_correctness=silent))[0] is Why.INVALID_VERDICT

    async def test_call_rejected_by_its_tool_is_wrong_whatever_the_judge_decides(self) -> None:
        bad = call(2, "book", error="1 validation error for BookInput\nseats\n  Input should be a valid integer")
        found = await scored("argument_correctness", trace(calls=[call(1), bad]))
        assert found.value == 0.5
        assert "rejected" in found.metadata["verdicts"][1]["reason"]
        assert "calls 2" in found.reason

    async def test_judge_is_not_called_if_all_calls_were_rejected(self) -> None:
        found, asked = await ask("argument_correctness", trace(calls=[call(1, error="MCP error -32602: no")]))
        assert isinstance(found, Score)
        assert (found.value, asked) == (0.0, [])

    async def test_arguments_that_were_not_captured_are_not_judged(self) -> None:
        blind = call(2, has_arguments=False, arguments=None)
        assert await unscored("argument_correctness", trace(calls=[blind])) == (Why.NO_CONTENT, [])
        found = await scored("argument_correctness", trace(calls=[call(1), blind]))
        assert (found.value, found.coverage) == (1.0, 0.5)


@pytest.mark.parametrize("name", ["plan_adherence", "plan_quality"])
class TestPlans:
    async def test_run_without_a_plan_is_assumed(self, name: str) -> None:
        found, asked = await assumed(name, RUN, plan={"plan": [], "revisions": []})
        assert asked == ["plan"]
        assert found.metadata == {"plan": []}
        for texts in ([""], [" ", ""], ["..."]):
            empty = [{"step": text, "shown_by": "turn 1"} for text in texts]
            assert isinstance((await assumed(name, RUN, plan={"plan": empty, "revisions": []}))[0], Assumed)

    @pytest.mark.parametrize("step", ["call 2", "turn 2", "call 0", "the first thought", ""])
    async def test_plan_step_with_an_invalid_position_is_rejected(self, name: str, step: str) -> None:
        why, asked = await unscored(name, RUN, plan={"plan": [{"step": "Go", "shown_by": step}], "revisions": []})
        assert (why, asked) == (Why.INVALID_VERDICT, ["plan", "plan"])

    async def test_judge_is_not_called_if_the_run_contains_no_text_before_its_end(self, name: str) -> None:
        """A judge could only invent a plan."""
        assert (await assumed(name, trace()))[1] == []
        assert (await assumed(name, trace(calls=[call(1), call(2, "book")])))[1] == []

    async def test_judge_extracts_the_plan_from_model_text_todo_calls_or_earlier_turns(self, name: str) -> None:
        asks = (Text("Plan: 1) search, 2) book."), ToolRequest("search", {"q": 1}, "call_1"))
        model = Span(TRACE_ID, "c7ad6b7169203331", "", "chat", Kind.LLM, 1, 2, output=(Message("assistant", asks),))
        promise = (Turn("Book it.", "First I search, then I book. Shall I?"), Turn("Yes.", "Done."))
        for subject in (trace(spans=(model,)), trace(calls=[call(1, "write_todos")]), trace(turns=promise)):
            judge = ScriptedJudge()
            await judge.finding(of(name), subject)
            assert judge.caller.asked[0] == "plan"

    async def test_plan_is_in_the_prompt_and_plan_and_task_are_in_the_metadata(self, name: str) -> None:
        judge = ScriptedJudge()
        found = await judge.finding(of(name), RUN)
        assert found is not None
        assert found.metadata == {
            "plan": ["Search for the parcel", "Tell the user"],
            "shown_by": ["turn 1", "turn 1"],
            "task": "Where is my parcel?",
        }
        assert "Search for the parcel" in judge.caller.questions[-1]


async def test_plan_is_the_first_plan_and_revisions_are_listed_separately() -> None:
    changes = [{"change": "Book first", "cause": 1}, {"change": "Skip it", "cause": None}, {"change": "Go", "cause": 7}]
    plan = [{"step": each, "shown_by": "call 1"} for each in ("Search", "Book")]
    judge = ScriptedJudge(plan={"plan": plan, "revisions": changes})
    followed = await judge.finding(of("plan_adherence"), RUN)
    assert isinstance(followed, Score)
    assert followed.metadata["plan"] == ["Search", "Book"]
    assert [each["cause"] for each in followed.metadata["revisions"]] == ["call 1", None, None]
    assert '"change": "Book first", "cause": "call 1"' in judge.caller.questions[-1]
    rated = await judge.finding(of("plan_quality"), RUN)
    assert isinstance(rated, Score)
    assert "Book first" not in judge.caller.questions[-1]


@pytest.mark.parametrize("metric", JUDGED, ids=lambda metric: metric.name)
async def test_metric_declares_all_its_rubrics_in_the_order_of_use(metric: TraceMetric) -> None:
    """The order is that of the judge calls."""
    judge = ScriptedJudge()
    await judge.finding(metric, trace(None, calls=[call(1)], reasoning=("First I search.",)))
    assert judge.caller.asked == [rubric.name for rubric in metric.rubrics]
    assert metric.rubrics[-1].name == metric.name


async def test_prompt_of_step_efficiency_contains_the_number_of_repeated_calls() -> None:
    judge = ScriptedJudge()
    same = [call(n, arguments={"q": 1}, result="none") for n in range(1, 5)]
    await judge.finding(of("step_efficiency"), trace(calls=same))
    told = re.search(r"^calls_that_repeat_another_in_vain: (\d+)$", judge.caller.questions[-1], re.MULTILINE)
    assert told
    assert told[1] == "3"


async def test_user_input_joins_the_user_messages_of_all_turns() -> None:
    turns = (Turn("Find it.", "Which?"), Turn("The red one.", "Found."))
    found, _ = await assumed("argument_correctness", trace(turns=turns))
    assert found.metadata["user_input"] == "Find it.\n\nThe red one."


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("1 validation error for book_ferry\npassengers\n  Input should be a valid integer", True),
        ("ValidationError: 1 validation error for Book_ferryTool\nx", True),
        ("MCP error -32602: Invalid arguments for tool book_ferry", True),
        ("TypeError: book_ferry() got an unexpected keyword argument 'seat'", True),
        ("TypeError: book_ferry() missing 1 required positional argument: 'day'", True),
        ("1 validation error for TimetableResponse\ndepartures\n  Field required", False),
        ("Connection refused", False),
        ("The ferry is full", False),
        ("", False),
        (None, False),
    ],
)
def test_rejected_arguments_are_distinguished_from_other_errors(error: str | None, expected: bool) -> None:
    assert are_arguments_rejected(call(1, "book_ferry", error=error)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, False), ("", False), (":", False), ("...", False), ("42", True), ("是", True), ("👍", True), ("ok", True)],
)
def test_answer_with_a_letter_digit_or_emoji_has_content(text: str | None, expected: bool) -> None:
    assert has_meaningful_text(text) is expected


SHARED = [each for each in JUDGED if each.name in {*NAMES, "correctness"}]


class TestSharedCall:
    """All questions about a trace without a session are in one judge call."""

    async def _all(self, subject: Trace = RUN, **answers: Any) -> tuple[dict[str, Finding | None], list[str]]:
        judge = ScriptedJudge(SHARED, **answers)
        found = await asyncio.gather(*(judge.finding(metric, subject) for metric in SHARED))
        return dict(zip((metric.name for metric in SHARED), found, strict=True)), judge.caller.asked

    @pytest.mark.parametrize("subject", [RUN, TALK], ids=["one message", "several"])
    async def test_shared_call_gives_the_same_results_as_separate_calls(self, subject: Trace) -> None:
        together, asked = await self._all(subject)
        assert asked == ["trace"]
        apart = ScriptedJudge()
        assert together == {metric.name: await apart.finding(metric, subject) for metric in SHARED}

    async def test_task_and_plan_are_requested_only_if_needed(self) -> None:
        for subject, task, plan in ((RUN, False, True), (TALK, True, True), (trace(calls=[call(1)]), False, False)):
            parts = [each for each in SHARED if each.name not in ("plan_adherence", "plan_quality") or plan]
            judge = ScriptedJudge(parts)
            await asyncio.gather(*(judge.finding(metric, subject) for metric in parts))
            [question] = judge.caller.questions
            assert ("\n## task\n" in question, "\n## plan\n" in question) == (task, plan)

    @pytest.mark.parametrize("name", sorted(metric.name for metric in SHARED))
    @pytest.mark.parametrize("part", [None, 7, [], {}, {"reason": "So.", "score": 9, "level": "so so"}])
    async def test_invalid_part_is_requested_in_a_separate_call(self, name: str, part: Any) -> None:
        judge = ScriptedJudge(SHARED)
        right = judge.caller.complete

        async def spoiled(call: Any) -> Any:
            answer = await right(call)
            if judge.caller.asked[-1] != "trace":
                return answer
            return replace(answer, text=json.dumps({**json.loads(answer.text), name: part}))

        judge.caller.complete = spoiled  # type: ignore[method-assign]
        found = [await judge.finding(metric, RUN) for metric in SHARED]
        assert all(isinstance(each, Score) for each in found), found
        assert judge.caller.asked == ["trace", name]

    async def test_unrequested_parts_of_a_reply_are_ignored(self) -> None:
        whole = {metric.name: GOOD[metric.name] for metric in SHARED} | {"correctness": RIGHT}
        extra = {**GOOD["confidence"], "score": 1.0}  # type: ignore[dict-item]
        parts = {**whole, "plan": GOOD["plan"], "confidence": extra, "verdict": 1.0}
        together, asked = await self._all(trace=lambda question: parts | {"argument_correctness": all_right(question)})
        assert asked == ["trace"]
        assert together == (await self._all())[0]

    async def test_plan_metrics_are_requested_separately_if_the_plan_is_invalid(self) -> None:
        nowhere = {"plan": [{"step": "Go", "shown_by": "call 9"}], "revisions": []}
        judge = ScriptedJudge(SHARED, plan=[nowhere, GOOD["plan"]])
        found = [await judge.finding(metric, RUN) for metric in SHARED]
        parts = [re.findall(r"^## (\w+)$", question, re.MULTILINE) for question in judge.caller.questions]
        assert parts[1:] == [["plan", "plan_adherence"], ["plan", "plan_quality"]]
        assert all(isinstance(each, Score) for each in found)

    async def test_plan_metrics_are_assumed_if_there_is_no_plan(self) -> None:
        together, asked = await self._all(
            plan={"plan": [], "revisions": []}, plan_quality={"reason": "-", "level": None}
        )
        assert asked == ["trace"]
        assert [name for name, each in together.items() if isinstance(each, Assumed)] == [
            "plan_adherence",
            "plan_quality",
        ]

    async def test_invalid_replies_leave_all_metrics_unscored_after_a_limited_number_of_calls(self) -> None:
        together, asked = await self._all(**{name: {"nonsense": True} for name in (*NAMES, "correctness", "plan")})
        assert {each.why for each in together.values() if isinstance(each, Unscored)} == {Why.INVALID_VERDICT}
        assert len([each for each in together.values() if isinstance(each, Unscored)]) == len(SHARED)
        # The shared call, its repair, and each part once; a plan is asked with its metric. The tenth call is not made.
        assert asked[:2] == ["trace", "trace"]
        assert len(asked) == MOST_INVALID
        assert {times for name, times in Counter(asked[2:]).items() if name != "trace"} == {1}
        assert Counter(asked[2:])["trace"] <= 2

    async def test_run_that_instructs_the_judge_is_unscored_after_one_call(self) -> None:
        best = {name: GOOD[name] for name in (*NAMES, "plan")} | {"correctness": RIGHT, "instructed": True}
        together, asked = await self._all(trace=lambda question: best | {"argument_correctness": all_right(question)})
        assert asked == ["trace"]
        assert [each.why for each in together.values() if isinstance(each, Unscored)] == [
            Why.INJECTION_SUSPECTED
        ] * len(SHARED)

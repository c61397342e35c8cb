"""Correctness replies and results."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.conversation import Conversation, conversation
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.prompt import messages, shape
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.scoring.metric import SessionContext, SessionView
from pandaeval_collector.scoring.metrics.session._correctness import PART, WHOLE as ASKED
from pandaeval_collector.scoring.registry import registry
from support.judged import call, trace
from support.scripted_judge import RIGHT, Memory, ScriptedCaller, ScriptedJudge

SUSPECTS = tuple(
    {"value": value, "text": f"at {value}", "trace_id": "t", "span_id": "s"} for value in ("12:30", "40", "A-7")
)

RUN = trace("Where is my parcel at the moment?", calls=[call(1)])
AGAIN = trace("Where is my parcel now?", calls=[call(number, arguments={"q": "parcel"}) for number in (1, 2, 3)])
WHOLE = conversation([RUN, AGAIN], "d")
CONTENT = {"goal_completed": True, "friction": "none", "friction_turns": []}
CORRECTNESS, GOAL, FRICTION = (
    registry()[f"session.{name}"] for name in ("correctness", "goal_completion", "user_friction")
)
LOST = {"thing": "Find it.", "became": "wrong", "shown_by": "call 3"}
LIE = {"statement": "It is here.", "step": "turn 2", "grave": True}
WRONG = {"things": [LOST], "first_wrong_step": "call 3", "correct": False, "sure": 4}


async def found(metric: Any, conversation: Conversation = WHOLE, *replies: dict[str, Any]) -> Finding | None:
    return (await _asked([metric], conversation, *replies))[0][0]


async def _asked(
    metrics: list[Any], conversation: Conversation, *replies: dict[str, Any], suspects: Any = ()
) -> tuple[list[Finding | None], ScriptedCaller]:
    caller = ScriptedCaller({"conversation": [{**RIGHT, **CONTENT, **reply} for reply in replies or ({},)]})
    desk, shown = JudgeClient(caller, Memory()), replace(pack(conversation.trace, b"s" * 32), suspects=suspects)

    async def one(metric: Any) -> Finding | None:
        try:
            return await metric.ask(conversation, Judge(desk, shown, "m", asker=metric.key))
        except NoVerdictError as error:
            return Unscored(error.why, str(error))

    return [*await asyncio.gather(*map(one, metrics))], caller


async def test_one_judge_call_answers_all_three_session_metrics() -> None:
    findings, caller = await _asked([CORRECTNESS, GOAL, FRICTION], WHOLE)
    assert caller.asked == ["conversation"]
    assert [each.value for each in findings if isinstance(each, Score)] == [0.9, 1.0, 1.0]
    shown = caller.messages[0][2]["content"]
    assert all(each in shown for each in ("Where is my parcel now?", "calls 3 to 4: as call 2")), "all of it is shown"


@pytest.mark.parametrize(
    ("reply", "score", "label"),
    [
        ({}, 0.9, None),
        ({"sure": 12}, 0.51, None),
        ({**WRONG}, 0.04, "wrong_thing"),
        ({**WRONG, "sure": 97}, 0.49, "wrong_thing"),
        ({**WRONG, "things": [{**LOST, "became": "missing", "shown_by": None}]}, 0.04, "missing_thing"),
        ({**WRONG, "things": [{**LOST, "became": "needlessly declined"}]}, 0.04, "needless_refusal"),
        ({**WRONG, "things": RIGHT["things"], "misstatements": [LIE]}, 0.04, "false_statement"),
        ({"misstatements": [{**LIE, "grave": False}]}, 0.9, None),
        ({**WRONG, "broken_rules": [{"rule": "Never.", "step": 2}], "misstatements": [LIE]}, 0.04, "forbidden_action"),
        ({"things": [{**LOST, "became": "rightly declined", "shown_by": "turn 1"}]}, 0.9, None),
    ],
)
async def test_score_is_the_certainty_and_label_the_most_severe_fault(
    reply: dict[str, Any], score: float, label: str | None
) -> None:
    got = await found(CORRECTNESS, WHOLE, reply)
    assert isinstance(got, Score), got
    assert (got.value, got.label) == (score, label)


async def test_first_wrong_step_is_mapped_to_its_span() -> None:
    got = await found(CORRECTNESS, WHOLE, WRONG)
    assert isinstance(got, Score)
    assert got.span_ids == (AGAIN.tool_calls[1].span_id,), "the third call of both traces"
    by_turn = await found(CORRECTNESS, WHOLE, {**WRONG, "first_wrong_step": "turn 1"})
    assert isinstance(by_turn, Score)
    assert by_turn.span_ids == (RUN.turns[0].span_id or RUN.root_span_id,)
    assert got.metadata["things"] == [LOST]
    assert got.metadata["first_wrong_step"] == "call 3"


@pytest.mark.parametrize(
    ("reply", "wrong"),
    [
        ({"things": [{**LOST, "became": "done", "shown_by": "call 5"}]}, "there is no call 5"),
        ({**WRONG, "first_wrong_step": "turn 3"}, "there is no turn 3"),
        ({"friction": "some", "friction_turns": [9]}, "there is no turn 9"),
        ({"things": [{**LOST, "became": "done", "shown_by": None}]}, "is the step that did it"),
        ({"things": [LOST]}, "name a wrong thing"),
        ({"things": [LOST], "correct": None}, "name a wrong thing"),
        ({"broken_rules": [{"rule": "Never.", "step": "call 1"}]}, "name a forbidden action"),
        ({"misstatements": [LIE]}, "name a false statement"),
        ({"correct": False}, "no part before it says what was wrong"),
        ({"first_wrong_step": "call 1"}, "has to be null where the agent did right"),
        ({"friction": "much"}, "friction_turns"),
        ({"things": [{**LOST, "became": "sort of"}]}, "things.0.became"),
        ({"first_wrong_step": "the third one"}, "first_wrong_step"),
        ({"sure": 120}, "sure"),
    ],
)
async def test_inconsistent_reply_is_requested_once_more(reply: dict[str, Any], wrong: str) -> None:
    findings, caller = await _asked([CORRECTNESS], WHOLE, reply, {})
    assert isinstance(findings[0], Score)
    assert wrong in caller.messages[1][-1]["content"]
    twice, caller = await _asked([CORRECTNESS, GOAL, FRICTION], WHOLE, reply)
    assert len(caller.asked) == 2, "one repair call for all three metrics"
    assert [each.why for each in twice if isinstance(each, Unscored)] == [Why.INVALID_VERDICT] * 3


async def test_undecided_verdict_is_unscored() -> None:
    things = [{**LOST, "became": "unknown", "shown_by": None}]
    findings, _ = await _asked([CORRECTNESS, GOAL], WHOLE, {"things": things, "correct": None, "goal_completed": None})
    assert [each.why for each in findings if isinstance(each, Unscored)] == [Why.INSUFFICIENT_EVIDENCE] * 2


async def test_an_open_question_is_kept_with_the_result() -> None:
    asked = "Is an explicit null\nfor an optional argument wrong?"
    kept = [await found(CORRECTNESS, WHOLE, {"sure": 60, "open_question": each}) for each in (asked, None)]
    assert [each and each.metadata.get("open_question") for each in kept] == [asked.replace("\n", " "), None]
    untold = {"things": [], "correct": None, "open_question": asked}
    unscored = await found(CORRECTNESS, WHOLE, untold)
    assert isinstance(unscored, Unscored)
    assert "open_question" in unscored.metadata, "also if the evidence is insufficient"


async def test_rightly_declined_request_is_correct_but_does_not_reach_the_goal() -> None:
    declined = {"things": [{**LOST, "became": "rightly declined"}], "goal_completed": False}
    findings, _ = await _asked([CORRECTNESS, GOAL], replace(WHOLE, missing=1), declined)
    right, goal = findings
    assert isinstance(right, Score)
    assert isinstance(goal, Score)
    assert (right.value, goal.value) == (0.9, 0.0)
    assert goal.metadata == {"goal": "Find it.", "turns": 2, "traces_not_shown": 1}


@pytest.mark.parametrize(("level", "score"), [("some", 0.5), ("much", 0.0)])
async def test_friction_names_the_turns_that_show_it(level: str, score: float) -> None:
    got = await found(FRICTION, WHOLE, {"friction": level, "friction_turns": [1, 2]})
    assert isinstance(got, Score)
    assert (got.value, got.reason) == (score, f"{level} friction in turns 1 and 2")


async def test_prompt_contains_stated_goal_profile_and_knowledge() -> None:
    known = replace(WHOLE, goal="Get it.", profile="in a hurry", knowledge=("It closes.",))
    findings, caller = await _asked([GOAL], known)
    assert isinstance(findings[0], Score)
    assert findings[0].metadata["goal"] == "Get it."
    given = caller.questions[0].partition("Facts about this run, also data:")[2]
    assert all(each in given for each in ("goal:", "Get it.", "profile:", "in a hurry", "knowledge:", "- It cl"))


@pytest.mark.parametrize(
    ("system", "rule"), [("Be kind.", "the instructions forbid is wrong"), (None, "No instructions were")]
)
async def test_rules_in_the_prompt_depend_on_captured_instructions(system: str | None, rule: str) -> None:
    told = replace(RUN, spans=tuple(span.but(system=system) for span in RUN.spans))
    judge = ScriptedJudge()
    assert isinstance(await judge.finding(registry()["trace.correctness"], told), Score)
    assert judge.caller.asked == ["correctness"]
    question = judge.caller.questions[0]
    assert rule in question
    assert "[with" not in question
    assert sum(each in question for each in ("the instructions forbid is wrong", "No instructions were")) == 1


@pytest.mark.parametrize("metric", [CORRECTNESS, GOAL, FRICTION])
async def test_session_is_unscored_if_less_than_half_of_it_can_be_shown(metric: Any) -> None:
    findings, caller = await _asked([metric], replace(WHOLE, missing=3))
    assert [each.why for each in findings if isinstance(each, Unscored)] == [Why.INSUFFICIENT_EVIDENCE]
    assert not caller.asked


async def test_run_is_unscored_if_less_than_half_of_it_can_be_shown() -> None:
    caller = ScriptedCaller({"correctness": RIGHT})
    shown = replace(pack(RUN, b"s" * 32), shown=0.4)
    finding = await registry()["trace.correctness"].ask(RUN, Judge(JudgeClient(caller, Memory()), shown, "m"))
    assert isinstance(finding, Unscored)
    assert finding.why is Why.INSUFFICIENT_EVIDENCE
    assert finding.reason == "the run is too long: only 40% of it fits the judge (judge.context_tokens)"
    assert not caller.asked


@pytest.mark.parametrize("metric", [CORRECTNESS, GOAL, FRICTION])
def test_session_without_traces_is_unscored(metric: Any) -> None:
    assert isinstance(metric.evaluate(SessionView("s", ()), SessionContext(0.5, frozenset(), {}, ())), Unscored)


class TestSuspects:
    """Suspect values are checked in the same judge call."""

    def _became(self, finding: Finding | None) -> list[str]:
        assert isinstance(finding, Score), finding
        return [each["became"] for each in finding.metadata["suspects"]]

    async def test_each_suspect_is_confirmed_refuted_or_unknown(self) -> None:
        replied = [{"number": 1, "became": "confirmed"}, {"number": 2, "became": "refuted"}]
        findings, caller = await _asked([CORRECTNESS, GOAL], WHOLE, {"suspects": replied}, suspects=SUSPECTS)
        right, goal = findings
        assert caller.asked == ["conversation"]
        assert '{"number": 1, "value": "12:30", "text": "at 12:30"}' in caller.questions[0]
        assert self._became(right) == ["confirmed", "refuted", "unknown"]
        assert isinstance(right, Score)
        assert right.metadata["suspects"][0] == {
            "value": "12:30",
            "trace_id": "t",
            "span_id": "s",
            "became": "confirmed",
        }
        assert right.reason.endswith("Suspects: '12:30' confirmed, '40' refuted.")
        assert isinstance(goal, Score)
        assert "suspects" not in goal.metadata

    @pytest.mark.parametrize(
        "part",
        [
            {},
            {"suspects": None},
            {"suspects": "all of them"},
            {"suspects": [7, {"number": 1}, {"number": "1", "became": "confirmed"}, {"number": 1, "became": "so"}]},
            {"suspects": [{"number": 9, "became": "confirmed"}, {"number": 0, "became": "confirmed"}]},
            {"suspects": [{"number": 1, "became": "confirmed"}, {"number": 1, "became": "refuted"}]},
        ],
    )
    async def test_invalid_suspect_reply_is_unknown_without_another_judge_call(self, part: dict[str, Any]) -> None:
        findings, caller = await _asked([CORRECTNESS], WHOLE, part, suspects=SUSPECTS)
        assert self._became(findings[0]) == ["unknown"] * 3
        assert len(caller.asked) == 1

    async def test_at_most_20_suspects_are_sent_to_the_judge(self) -> None:
        findings, caller = await _asked([CORRECTNESS], WHOLE, suspects=SUSPECTS * 20)
        assert len(self._became(findings[0])) == 20
        assert '"number": 20' in caller.questions[0]
        assert '"number": 21' not in caller.questions[0]

    async def test_suspects_of_a_trace_are_in_its_shared_judge_call(self) -> None:
        metrics = [registry()[f"trace.{name}"] for name in ("correctness", "confidence")]
        suspects = {**RIGHT, "suspects": [{"number": 2, "became": "refuted", "why": "It follows."}]}
        for listed, shown in ((SUSPECTS, True), ((), False)):
            caller = ScriptedCaller({"correctness": suspects})
            packed = replace(pack(RUN, b"s" * 32), suspects=listed)
            parts = tuple(metric.part for metric in metrics if metric.part)
            judge = Judge(JudgeClient(caller, Memory()), packed, "m", together=parts)
            found = [await metric.ask(RUN, judge) for metric in metrics if metric.ask]
            assert caller.asked == ["trace"]
            assert ("suspects: a list" in caller.questions[0], "Suspects are values" in caller.questions[0]) == (
                shown,
            ) * 2
            assert isinstance(found[0], Score)
            assert [each["became"] for each in found[0].metadata.get("suspects", ())] == [
                "unknown",
                "refuted",
                "unknown",
            ] * shown

    async def test_prompt_without_suspects_does_not_mention_suspects(self) -> None:
        _, caller = await _asked([CORRECTNESS], WHOLE)
        given = {"calls": 4, "turns": 2}
        assert caller.messages[0] == messages(pack(WHOLE.trace, b"s" * 32), ASKED, given)
        assert "uspect" not in caller.questions[0]

    def test_suspects_are_the_first_field_of_the_reply(self) -> None:
        assert [next(iter(shape(rubric)["properties"])) for rubric in (ASKED, rubric_of((PART,)))] == ["suspects"] * 2

"""Turn metrics case by case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.rubric import rubric_of
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.scoring.metric import TurnContext, TurnMetric
from pandaeval_collector.scoring.metrics.turn.agent_behavior_failure import LABELS as OF_AGENT
from pandaeval_collector.scoring.metrics.turn.tool_call_behavior_failure import LABELS as OF_TOOLS
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace
from support.judged import call, trace
from support.scripted_judge import RATED, TURN, Memory, ScriptedCaller, of_turn

METRICS: dict[str, TurnMetric] = {m.name: m for m in registry().values() if m.level == "turn"}
PARTS = tuple(metric.part for metric in METRICS.values() if metric.part is not None)
RUN = trace("Where is my parcel at the moment?", calls=[call(1)])
AGAIN = trace("Where is my parcel now?", calls=[call(number, arguments={"q": "parcel"}) for number in (1, 2, 3)])


class Asking:
    """Scores one turn with all metrics."""

    def __init__(self, subject: Trace = RUN, together: bool = True, **parts: Any) -> None:
        answers = {**dict.fromkeys(TURN, of_turn(TURN)), **parts}
        self.caller = ScriptedCaller(answers)
        self._desk, self.view, self._together = JudgeClient(self.caller, Memory()), turn_view(subject, 0), together

    async def finding(self, name: str) -> Finding | None:
        metric = METRICS[name]
        assert metric.ask is not None
        before = metric.evaluate(self.view, TurnContext(3.0))
        if before is not None:
            return before
        shown, parts = pack(self.view.trace, b"s" * 32), PARTS if self._together else ()
        try:
            return await metric.ask(self.view, Judge(self._desk, shown, "m", asker=metric.key, together=parts))
        except NoVerdictError as error:
            return Unscored(error.why, str(error))

    async def all(self) -> Mapping[str, Finding | None]:
        return dict(zip(METRICS, await asyncio.gather(*map(self.finding, METRICS)), strict=True))


async def scored(name: str, subject: Trace = RUN, **parts: Any) -> Score:
    found = await Asking(subject, together=False, **parts).finding(name)
    assert isinstance(found, Score), found
    return found


def test_there_are_seven_turn_metrics() -> None:
    assert set(METRICS) == {*RATED, "agent_behavior_failure", "tool_call_behavior_failure"}
    assert {metric.threshold for metric in METRICS.values() if metric.scale} == {3.0}


async def test_one_judge_call_answers_all_seven_turn_metrics() -> None:
    asking = Asking(turn=of_turn(TURN))
    found = await asking.all()
    assert asking.caller.asked == ["turn"]
    for name, rating in RATED.items():
        score = found[name]
        assert isinstance(score, Score)
        assert (score.raw, score.value, score.scale) == (rating, (rating - 1) / 4, "1-5")
    labels = [found[name] for name in ("agent_behavior_failure", "tool_call_behavior_failure")]
    assert all(isinstance(each, Score) and each.metadata["labels"] == ["no failure"] for each in labels)


def test_shared_prompt_contains_the_prompt_of_each_metric_verbatim() -> None:
    shared = rubric_of(PARTS)
    for part in PARTS:
        assert part.text.strip() in shared.text
        assert part.text.strip() in rubric_of((part,)).text
        assert part.about.strip() in shared.text
    assert {*shared.verdict.model_fields} == {"instructed", "echo", *METRICS}


async def test_separate_calls_give_the_same_results_as_the_shared_call() -> None:
    apart, together = Asking(together=False), Asking(turn=of_turn(TURN))
    assert await apart.all() == await together.all()
    assert sorted(apart.caller.asked) == sorted(METRICS)


@pytest.mark.parametrize("name", METRICS)
async def test_invalid_verdict_of_one_metric_does_not_affect_other_metrics(name: str) -> None:
    wrong = {**TURN, name: {"reason": "So.", "rating": 6, "labels": ["all of it"], "calls": []}}
    asking = Asking(**dict.fromkeys(("turn", name), of_turn(wrong)))
    found = await asking.all()
    assert asking.caller.asked == ["turn", name]
    missed = {each for each, finding in found.items() if isinstance(finding, Unscored)}
    assert missed == {name}
    assert isinstance(lost := found[name], Unscored)
    assert lost.why is Why.INVALID_VERDICT


async def test_turn_that_instructs_the_judge_is_unscored_after_one_call() -> None:
    asking = Asking(turn=lambda question: {**of_turn(TURN)(question), "instructed": True})
    found = await asking.all()
    assert asking.caller.asked == ["turn"]
    assert {finding.why for finding in found.values() if isinstance(finding, Unscored)} == {Why.INJECTION_SUSPECTED}
    assert len([finding for finding in found.values() if isinstance(finding, Unscored)]) == 7


class TestRatings:
    async def test_null_rating_is_insufficient_evidence(self) -> None:
        unknown = of_turn({"helpfulness": {"reason": "It was cut.", "rating": None}})
        found = await Asking(together=False, helpfulness=unknown).finding("helpfulness")
        assert isinstance(found, Unscored)
        assert found.why is Why.INSUFFICIENT_EVIDENCE

    async def test_faithfulness_is_unscored_if_there_is_nothing_to_contradict(self) -> None:
        bare = Asking(trace("What is a parcel, in short?", "A box that is sent."), together=False)
        found = await bare.finding("faithfulness")
        assert isinstance(found, Unscored)
        assert (found.why, bare.caller.asked) == (Why.INSUFFICIENT_EVIDENCE, [])

    @pytest.mark.parametrize(("user", "answer"), [("Where is my parcel?", ""), (None, "At the depot.")])
    async def test_turn_without_question_or_answer_is_no_content(self, user: str | None, answer: str) -> None:
        found = await Asking(trace(user, answer), together=False).finding("helpfulness")
        assert isinstance(found, Unscored)
        assert found.why is Why.NO_CONTENT

    def test_rating_does_not_apply_to_a_failed_run(self) -> None:
        failed = turn_view(trace(answer=None, error="boom", output=None), 0)
        applies = METRICS["helpfulness"].applies
        assert applies is not None
        assert not applies(failed)


class TestLabels:
    @pytest.mark.parametrize(
        ("name", "order"), [("agent_behavior_failure", OF_AGENT), ("tool_call_behavior_failure", OF_TOOLS)]
    )
    async def test_most_severe_label_is_the_label_of_the_result(self, name: str, order: tuple[str, ...]) -> None:
        asked = [label for label in order if label != "repeated tool call"]
        for at, label in enumerate(asked):
            given = [*reversed(asked[at : at + 3])]
            found = await scored(name, **{name: of_turn({name: {"reason": "So.", "labels": given, "calls": [1]}})})
            assert (found.value, found.label, found.failed) == (0.0, label, True)
            assert found.metadata["labels"] == asked[at : at + 3]
            assert found.span_ids == (RUN.tool_calls[0].span_id,)

    async def test_label_no_failure_with_another_label_is_invalid(self) -> None:
        both = {"reason": "So.", "labels": ["no failure", "repetition"], "calls": []}
        found = await Asking(together=False, agent_behavior_failure=of_turn({"agent_behavior_failure": both})).finding(
            "agent_behavior_failure"
        )
        assert isinstance(found, Unscored)
        assert found.why is Why.INVALID_VERDICT

    async def test_verdict_about_a_call_that_does_not_exist_is_invalid(self) -> None:
        name = "tool_call_behavior_failure"
        there = {"reason": "So.", "labels": ["wrong tool"], "calls": [2]}
        found = await Asking(together=False, **{name: of_turn({name: there})}).finding(name)
        assert isinstance(found, Unscored)
        assert found.why is Why.INVALID_VERDICT

    async def test_missing_tool_call_is_the_only_valid_label_without_calls(self) -> None:
        name, silent = "tool_call_behavior_failure", trace("What is the weather in Turin?", "It is sunny.")
        for label, holds in (("missing tool call", True), ("wrong tool", False)):
            said = of_turn({name: {"reason": "So.", "labels": [label], "calls": []}})
            found = await Asking(silent, together=False, **{name: said}).finding(name)
            assert isinstance(found, Score) is holds, label

    @pytest.mark.parametrize(
        ("subject", "applies"),
        [(RUN, True), (trace("Hi"), True), (trace("Hi", tools=()), False)],
        ids=["calls", "tools", "neither"],
    )
    def test_tool_metric_applies_only_if_there_are_calls_or_tools(self, subject: Trace, applies: bool) -> None:
        decides = METRICS["tool_call_behavior_failure"].applies
        assert decides is not None
        assert decides(turn_view(subject, 0)) is applies


class TestRepeatedCalls:
    async def test_label_is_added_to_the_labels_of_the_judge(self) -> None:
        name = "tool_call_behavior_failure"
        said = of_turn({name: {"reason": "Not needed.", "labels": ["unnecessary tool call"], "calls": [3]}})
        found = await scored(name, AGAIN, **{name: said})
        assert found.label == "repeated tool call"
        assert found.metadata["labels"] == ["repeated tool call", "unnecessary tool call"]
        assert found.metadata["repeated"] == [2, 3]
        graver = of_turn({name: {"reason": "It ignored it.", "labels": ["ignored tool result"], "calls": [1]}})
        assert (await scored(name, AGAIN, **{name: graver})).label == "ignored tool result"

    async def test_label_replaces_the_label_no_failure_of_the_judge(self) -> None:
        found = await scored("tool_call_behavior_failure", AGAIN)
        assert found.metadata["labels"] == ["repeated tool call"]
        assert found.reason == "2 calls to search repeated an earlier call and brought no new result (found by code)"

    def test_are_found_without_a_judge(self) -> None:
        by_code = METRICS["tool_call_behavior_failure"].by_code
        assert by_code is not None
        found = by_code(turn_view(AGAIN, 0))
        assert found is not None
        assert (found.value, found.label) == (0.0, "repeated tool call")
        assert by_code(turn_view(RUN, 0)) is None


def test_prompt_contains_goal_profile_and_knowledge_of_the_view() -> None:
    view = TurnView(RUN, goal="Get the parcel.", profile="in a hurry", knowledge=("It closes at six.",))
    caller = ScriptedCaller(dict.fromkeys(TURN, of_turn(TURN)))
    ask = METRICS["helpfulness"].ask
    assert ask is not None
    asyncio.run(_ignored(ask, view, caller))
    given = caller.questions[0].partition("Facts about this run, also data:")[2]
    assert all(each in given for each in ("goal: ", "Get the parcel.", "in a hurry", "- It closes at six."))


async def _ignored(ask: Any, view: TurnView, caller: ScriptedCaller) -> None:
    await ask(view, Judge(JudgeClient(caller, Memory()), pack(view.trace, b"s" * 32), "m"))

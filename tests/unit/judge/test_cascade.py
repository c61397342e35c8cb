"""A cheap judge that is asked first: when its verdict stands, who is paid, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.score import Finding, Score
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.jobs.anew import Cascade, Votes
from pandaeval_collector.jobs.checks import Agreement, AskedAgain
from pandaeval_collector.jobs.setup import Desks
from pandaeval_collector.judge.call import CallFailedError, CallFailure, ModelAnswer, ModelCall
from pandaeval_collector.judge.desk import Desk, Judge, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.selection import CascadeStep
from pandaeval_collector.runs.judging_files import KeptRule, read_rules, steps, write_rules
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings, Question
from pandaeval_collector.store import Store
from support.asked import Memory, ScriptedCaller
from support.embedder import WordEmbedder
from support.judged import call, trace

STRONG, CHEAP, KEY = "openai/large", "openai/small", "trace.confidence"
RUN = trace(calls=[call(1)])
STEP = CascadeStep(CHEAP, 0.2, 0.8)
RULE = KeptRule(metric=KEY, version="4", cheap=CHEAP, strong=STRONG, low=0.2, high=0.8, n=200, asked=0.4, agreed=0.97)


class _TwoJudges(ScriptedCaller):
    """The cheap one says what it is told to, the strong one 0.6."""

    def __init__(self, cheap: float | None, **fields: Any) -> None:
        super().__init__({"confidence": {"reason": "The strong one.", "confidence": 0.6}})
        self._cheap = cheap
        self._other = ScriptedCaller({"confidence": {"reason": "The cheap one.", "confidence": cheap, **fields}})
        self.asked_of: list[str] = []

    async def complete(self, call: ModelCall) -> ModelAnswer:
        self.asked_of.append(call.model)
        if call.model != CHEAP:
            return await super().complete(call)
        if self._cheap == -1:
            raise CallFailedError(CallFailure.UNAVAILABLE, "away")
        return await self._other.complete(call)


def _question(settings: JudgeSettings) -> Question:
    _, questions = Evaluator(WordEmbedder(), EvaluatorSettings(judge=settings)).judged(RUN)
    return next(each for each in questions if each.metric.key == KEY)


async def _verdict(caller: _TwoJudges) -> tuple[Finding | None, Judge]:
    settings, memory = JudgeSettings(STRONG, cascade={KEY: STEP}), Memory()
    desks = Desks(caller, settings)
    judge = Judge(Desk(caller, memory), pack(RUN, b"s" * 32), STRONG)
    return await Cascade(desks, memory, Votes(desks, memory, 1)).verdict(_question(settings), RUN, judge), judge


@pytest.mark.parametrize("sure", [0.1, 0.2, 0.8, 1.0])
async def test_a_verdict_that_is_sure_stands_and_is_the_cheap_judges(sure: float) -> None:
    caller = _TwoJudges(sure)
    found, judge = await _verdict(caller)
    assert isinstance(found, Score)
    assert (found.value, caller.asked_of) == (sure, [CHEAP])
    assert found.metadata["cascade"] == {"model": CHEAP, "score": sure, "asked": False}
    assert (judge.spent.model, judge.spent.calls, bool(judge.spent.pack)) == (CHEAP, 1, True)


async def test_in_doubt_the_strong_judge_is_asked_and_both_are_paid() -> None:
    caller = _TwoJudges(0.5)
    found, judge = await _verdict(caller)
    assert isinstance(found, Score)
    assert (found.value, caller.asked_of) == (0.6, [CHEAP, STRONG])
    assert found.metadata["cascade"] == {"model": CHEAP, "score": 0.5, "asked": True}
    assert judge.spent.model != CHEAP
    assert judge.spent.calls == 2


@pytest.mark.parametrize("cheap", [None, -1])
async def test_a_cheap_judge_without_a_verdict_decides_nothing(cheap: float | None) -> None:
    caller = _TwoJudges(cheap)
    found, _ = await _verdict(caller)
    assert isinstance(found, Score)
    assert (found.value, caller.asked_of[-1]) == (0.6, STRONG)


async def test_a_run_that_instructs_the_cheap_judge_is_not_shown_to_another() -> None:
    caller = _TwoJudges(0.9, instructed=True)
    with pytest.raises(NoVerdictError):
        await _verdict(caller)
    assert caller.asked_of == [CHEAP]


async def test_a_retest_puts_the_question_to_whom_decided_and_a_second_judge_is_held_against_that_one(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path, "off")
    telemetry = Telemetry()
    agreement = Agreement(store, telemetry)
    caller = _TwoJudges(0.9)
    found, judge = await _verdict(caller)
    question = _question(JudgeSettings(STRONG, cascade={KEY: STEP}))
    assert found is not None
    found = await AskedAgain(Desks(caller), agreement, telemetry, 1.0).beside(question, RUN, judge.pack, judge, found)
    assert caller.asked_of == [CHEAP, CHEAP]
    second = AskedAgain(Desks(caller), agreement, telemetry, 1.0, STRONG, Memory())
    found = await second.beside(question, RUN, judge.pack, judge, found)
    assert caller.asked_of == [CHEAP, CHEAP, STRONG]
    assert found.metadata["second"]["difference"] == pytest.approx(0.3)
    assert agreement.of("second", KEY, f"{CHEAP} / {STRONG}") is not None
    store.close()


def test_results_with_and_without_a_cascade_never_share_an_id() -> None:
    found = [
        _question(JudgeSettings(STRONG, cascade=each)).id
        for each in ({}, {KEY: STEP}, {KEY: CascadeStep(CHEAP, 0.1, 0.8)}, {"trace.plan_quality": STEP})
    ]
    assert len(set(found)) == 3
    assert found[0] == found[3]


def test_a_rule_holds_for_the_judge_and_version_that_it_was_found_by(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cascade.json"
    write_rules([RULE], path)
    assert steps(read_rules(path), {KEY: (STRONG, "4")}) == {KEY: STEP}
    assert steps(read_rules(path), {"trace.plan_quality": (STRONG, "4")}) == {}
    assert steps([RULE], {KEY: ("openai/other", "4")}) == {}
    assert "was calibrated with openai/large (version 4), and openai/other (version 4) judges" in caplog.text
    path.write_text("{}")
    with pytest.raises(UserError, match=r"judge\.cascade: .*format: Field required"):
        read_rules(path)

"""A judge names the step that broke a run, where it does so twice."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.embedding import load as embedder
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.metrics.trace.judged_blame import METRIC
from support.asked import ScriptedJudge
from support.judged import call, trace

RUN = trace(calls=[call(1), call(2)])
NOTHING = trace(None, None, tools=(), turns=(), input=None, output=None)


def step(name: str | None) -> dict[str, Any]:
    number = {"request": 1, "call 1": 2, "call 2": 3, "answer": 4, "call 9": 11}
    return {"reason": "It looked for another parcel.", "step": None if name is None else number[name]}


async def ask(*answers: dict[str, Any]) -> tuple[Finding | None, list[str]]:
    judge = ScriptedJudge(judged_blame=list(answers))
    return await judge.finding(METRIC, RUN), judge.caller.asked


@pytest.mark.parametrize("name", ["request", "call 1", "call 2", "answer"])
async def test_two_readings_that_agree_name_a_step(name: str) -> None:
    found, asked = await ask(step(name), step(name))
    assert isinstance(found, Score)
    assert (found.value, found.metadata["step"]["name"]) == (1.0, name)
    assert found.reason.startswith(f"{name}: ")
    assert asked == ["judged_blame"] * 2, "the order of the steps is another one, so that it is asked anew"


@pytest.mark.parametrize("readings", [("call 1", "call 2"), (None, "call 1"), (None, None)])
async def test_two_that_do_not_are_unknown(readings: tuple[str | None, str | None]) -> None:
    found, _ = await ask(*map(step, readings))
    assert isinstance(found, Unscored)
    assert found.why is Why.INSUFFICIENT_EVIDENCE
    assert "blame: unknown" in found.reason


async def test_a_step_that_there_is_not_is_no_verdict() -> None:
    found, asked = await ask(step("call 9"))
    assert isinstance(found, Unscored)
    assert found.why is Why.INVALID_VERDICT
    assert len(asked) == 2, "once, and once more with what is wrong"


async def test_where_nothing_was_captured_nobody_is_asked() -> None:
    judge = ScriptedJudge()
    found = await judge.finding(METRIC, NOTHING)
    assert isinstance(found, Unscored)
    assert (found.why, judge.caller.asked) == (Why.NO_CONTENT, [])


@pytest.mark.parametrize("by_name", [True, False])
def test_it_is_asked_only_where_it_is_named(by_name: bool) -> None:
    settings = EvaluatorSettings(enabled={METRIC.key}, by_name=by_name, judge=JudgeSettings("m"))
    assert Evaluator(embedder("embedded"), settings).asked == ([METRIC.key] if by_name else [])

"""Missing data never gives a wrong verdict.

Perfect and worst-case judges bound real judges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.analysis.rules.response_recovery import admits_failure
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.scoring.registry import registry
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import ToolCall, Trace
from pandaeval_otel.normal.trace import is_genai
from support.scripted_judge import ScriptedJudge, all_right

GOLDEN = Path(__file__).parent / "captures"
SHARED = Path(__file__).parents[2].parent / "shared" / "captures"
QUICK = ("langgraph_openinference", "adk")
"""Two vocabularies; the rest are slow tests."""
JUDGED = [m for m in registry().values() if m.kind == "llm" and m.level == "trace"]
ALL = frozenset(metric.name for metric in JUDGED)


def _verdicts(value: float) -> dict[str, Any]:
    reason = {"reason": "As always."}
    levels = {"step_efficiency": ("all", "none"), "plan_adherence": ("not at all", "exactly")}
    levels["plan_quality"] = "none", "excellent"
    right = "yes" if value else "no"

    def arguments(question: str) -> dict[str, Any]:
        found = all_right(question)
        return {**found, "verdicts": [{**each, "verdict": right} for each in found["verdicts"]]}

    answers: dict[str, Any] = {name: {**reason, "level": both[value == 1.0]} for name, both in levels.items()}
    answers["task_completion"] = {"answered": right, "taken": right, **reason, "verdict": value}
    missing = [] if value else ["another_tool"]
    answers["tool_correctness"] = {"missing": missing, "excess": [], "wrong": [], **reason, "score": value}
    answers["confidence"] = {**reason, "confidence": value}
    return {**answers, "argument_correctness": arguments}


JUDGES = {"generous": _verdicts(1.0), "harsh": _verdicts(0.0)}


def _files(all_of_them: bool) -> list[Path]:
    golden = [path for path in sorted(GOLDEN.glob("*/*.otlp.jsonl")) if all_of_them or path.parent.name in QUICK]
    return golden + (sorted(SHARED.glob("*/*.otlp.jsonl")) if all_of_them and SHARED.is_dir() else [])


@cache
def _traces(path: Path) -> tuple[Trace, ...]:
    with TraceFiles() as run:
        for request in requests([str(path)]):
            run.add(request)
        return tuple(trace for trace in run.traces() if is_genai(trace) and trace.complete)


async def _found(trace: Trace, judge: str, metrics: Collection[str] = ALL, **answers: Any) -> dict[str, Finding | None]:
    scripted = ScriptedJudge(**{**JUDGES[judge], **answers})
    return {metric.name: await scripted.finding(metric, trace) for metric in JUDGED if metric.name in metrics}


# -- faults ------------------------------------------------------------------------------------------------------------


def _no_answers(trace: Trace, left: str | None) -> Trace:
    turns = tuple(replace(turn, assistant=left) for turn in trace.turns)
    return replace(trace, turns=turns, output=left)


def _calls(trace: Trace, **fields: Any) -> Trace:
    return replace(trace, tool_calls=tuple(replace(call, **fields) for call in trace.tool_calls))


def _blind(trace: Trace) -> Trace:
    nothing = {"has_arguments": False, "arguments": None, "has_result": False, "result": None, "error": None}
    unheard = tuple(replace(turn, user=None) for turn in trace.turns)
    silent = replace(_no_answers(trace, None), input=None, reasoning=(), error=None)
    return _calls(replace(silent, turns=tuple(replace(turn, assistant=None) for turn in unheard)), **nothing)


def _cut(call: ToolCall) -> ToolCall:
    return replace(call, arguments='{"order_id": "A-10', has_arguments=True, error=None)


def _is(found: Finding | None, why: Why) -> bool:
    return isinstance(found, Unscored) and found.why is why


def _crashed(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    done = found["task_completion"]
    return ["task_completion"] if isinstance(done, Score) and done.value >= 0.5 else []


def _answers_missing(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    """Unknown, except for runs that ended with an error."""
    if trace.error is not None:
        return _crashed(found, trace, judge)
    return [] if _is(found["task_completion"], Why.NO_CONTENT) else ["task_completion"]


def _tools_missing(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    return [name for name in ("tool_correctness", "argument_correctness") if isinstance(found[name], Score)]


def _nothing_scored(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    return [name for name, each in found.items() if isinstance(each, Score)]


def _arguments_missing(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    wanted = Unscored if trace.tool_calls else Assumed
    return [] if isinstance(found["argument_correctness"], wanted) else ["argument_correctness"]


def _plan_missing(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    return [name for name in ("plan_adherence", "plan_quality") if isinstance(found[name], Score)]


def _actions_failed(found: Mapping[str, Finding | None], trace: Trace, judge: str) -> list[str]:
    """At best partial, unless the agent reported the failure."""
    done = found["task_completion"]
    admitted = any(admits_failure(turn.assistant or "") for turn in trace.turns)
    wrong = trace.tool_calls and not admitted and isinstance(done, Score) and done.value > 0.74
    return ["task_completion"] if wrong else []


Fault = Callable[[Trace], Trace]
Wrong = Callable[[Mapping[str, Finding | None], Trace, str], list[str]]
_DONE, _ARGUMENTS = frozenset({"task_completion"}), frozenset({"argument_correctness"})
FAULTS: Mapping[str, tuple[Fault, Wrong, Collection[str]]] = {
    "crashed without an answer": (lambda t: replace(_no_answers(t, None), error="killed"), _crashed, _DONE),
    "crashed with an empty answer": (lambda t: replace(_no_answers(t, ""), error="killed"), _crashed, _DONE),
    "crashed with an opening": (lambda t: replace(_no_answers(t, "Solution:"), error="killed"), _crashed, _DONE),
    "answers not captured": (lambda t: _no_answers(t, None), _answers_missing, _DONE),
    "no tools": (lambda t: replace(t, tools=(), tool_calls=()), _tools_missing, _ARGUMENTS | {"tool_correctness"}),
    "no content at all": (_blind, _nothing_scored, ALL),
    "arguments not captured": (
        lambda t: _calls(t, arguments=None, has_arguments=False, error=None),
        *(_arguments_missing, _ARGUMENTS),
    ),
    "arguments cut off": (
        lambda t: replace(t, tool_calls=tuple(map(_cut, t.tool_calls))),
        *(_arguments_missing, _ARGUMENTS),
    ),
    "all calls failed": (lambda t: _calls(t, error="service is down", result=None), _actions_failed, _DONE),
}
"""Change of a trace, wrong scores, and metrics."""


async def _wrong(path: Path, fault: str) -> list[str]:
    change, wrong, metrics = FAULTS[fault]
    found = []
    for trace in _traces(path):
        broken = change(trace)
        for judge in JUDGES:
            found += [f"{judge}: {name}" for name in wrong(await _found(broken, judge, metrics), broken, judge)]
    return found


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name.partition('.')[0]}"


@pytest.mark.parametrize("fault", FAULTS)
async def test_missing_data_never_gives_a_wrong_score(fault: str) -> None:
    found = {_name(path): wrong for path in _files(False) if (wrong := await _wrong(path, fault))}
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
async def test_missing_data_never_gives_a_wrong_score_in_all_recordings(fault: str) -> None:
    found = {_name(path): wrong for path in _files(True) if (wrong := await _wrong(path, fault))}
    assert found == {}


@pytest.mark.parametrize("plan", [[], [" ", ""]], ids=["empty", "blank"])
@pytest.mark.parametrize("judge", JUDGES)
async def test_an_empty_plan_gets_no_plan_scores(judge: str, plan: list[str]) -> None:
    for path in _files(False):
        for trace in _traces(path):
            found = await _found(trace, judge, {"plan_adherence", "plan_quality"}, plan={"plan": plan})
            assert _plan_missing(found, trace, judge) == [], _name(path)


async def test_judge_prompt_does_not_treat_missing_tool_definitions_as_no_tools() -> None:
    for path in _files(False):
        for trace in _traces(path):
            judge = ScriptedJudge()
            await judge.finding(registry()["trace.tool_correctness"], replace(trace, tools=()))
            for question in judge.caller.questions:
                assert "An unlisted tool may have existed" in " ".join(question.split()), _name(path)
                assert "available_tools" not in question, _name(path)


async def test_empty_arguments_are_scored_only_if_the_tool_requires_none() -> None:
    path = next(path for path in _files(False) if path.name.startswith("good."))
    trace = next(each for each in _traces(path) if each.tool_calls and each.tools)
    metric = registry()["trace.argument_correctness"]
    for required, expected in (([], Score), (["id"], Unscored)):
        tools = tuple(replace(tool, parameters={"type": "object", "required": required}) for tool in trace.tools)
        found = await ScriptedJudge(**JUDGES["harsh"]).finding(
            metric, replace(_calls(trace, arguments={}), tools=tools)
        )
        assert isinstance(found, expected), found


async def test_generous_and_harsh_judges_differ_if_no_data_is_missing() -> None:
    path = next(path for path in _files(False) if path.name.startswith("good."))
    trace = next(each for each in _traces(path) if each.tool_calls and each.output)
    generous, harsh = await _found(trace, "generous"), await _found(trace, "harsh")
    for name in ("task_completion", "tool_correctness", "argument_correctness", "confidence"):
        best, worst = generous[name], harsh[name]
        assert isinstance(best, Score)
        assert isinstance(worst, Score)
        assert (best.value, worst.value) == (1.0, 0.0)

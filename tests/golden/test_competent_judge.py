"""Prompts contain the data that a judge needs to find bad runs.

Uses ``tests/support/competent.py``; the expected metric must fall.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from pandaeval_collector.base.score import Finding, Score, Unscored
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError
from pandaeval_collector.judge.pack import pack
from pandaeval_collector.judge.redact import redacted
from pandaeval_collector.scoring.metric import Texts, TraceContext, TraceMetric
from pandaeval_collector.scoring.registry import registry
from pandaeval_otel.model import Trace
from support.competent import CompetentCaller
from support.scripted_judge import Memory
from tests.golden.test_grounding_captures import OWN, SHARED, traces

FALLS = {
    "wrong_tool": "tool_correctness",
    "wrong_args": "argument_correctness",
    "hallucinates": "task_completion",
    "gives_up": "task_completion",
    "off_topic": "task_completion",
}
PASSES = 0.5
CONTEXT = TraceContext(Texts({}, (), "none", None), 0.5)


async def _finding(metric: TraceMetric, path: Path) -> list[Finding]:
    found: list[Finding] = []
    desk = JudgeClient(CompetentCaller(), Memory())
    for trace in _traces(path):
        finding = metric.evaluate(trace, CONTEXT)
        if finding is None and metric.ask is not None:
            try:
                finding = await metric.ask(trace, Judge(desk, pack(trace, b"s" * 32), "m"))
            except NoVerdictError as error:
                finding = Unscored(error.why, str(error))
        if finding is not None:
            found.append(finding)
    return found


@cache
def _traces(path: Path) -> tuple[Trace, ...]:
    return tuple(redacted(trace) for trace in traces(path)) if path.is_file() else ()


async def _score(metric: TraceMetric, path: Path) -> float | str:
    """Return the worst score of a recording, or a reason."""
    found = await _finding(metric, path)
    values = [each.value for each in found if isinstance(each, Score)]
    whys = sorted({each.reason for each in found if isinstance(each, Unscored)})
    return min(values) if values else "; ".join(whys) or "nothing was recorded that could be judged"


def _blind(path: Path) -> bool:
    """Return whether all tool results are missing."""
    calls = [call for trace in _traces(path) for call in trace.tool_calls]
    return bool(calls) and not any(call.has_result or call.error is not None for call in calls)


def _sets(root: Path, scenario: str) -> list[Path]:
    if not root.is_dir():
        pytest.skip(f"no captures in {root}: they are not part of this checkout")
    return sorted(path.parent for path in root.glob(f"*/{scenario}.otlp.jsonl"))


async def ranked(root: Path, good: str, bad: str) -> tuple[list[str], list[str], dict[str, str]]:
    """Return sets by outcome: ranked, other, undecidable."""
    metric = registry()[f"trace.{FALLS[bad]}"]
    below: list[str] = []
    not_below: list[str] = []
    cannot: dict[str, str] = {}
    for folder in _sets(root, bad):
        first = folder / f"{good}.otlp.jsonl"
        one, other = await _score(metric, first), await _score(metric, folder / f"{bad}.otlp.jsonl")
        if isinstance(one, str) or isinstance(other, str):
            cannot[folder.name] = one if isinstance(one, str) else str(other)
        elif _blind(first):
            cannot[folder.name] = "no result of a tool was recorded"
        else:
            (below if other < PASSES <= one else not_below).append(folder.name)
    return below, not_below, cannot


@pytest.mark.parametrize("bad", ["wrong_tool", "gives_up", "off_topic"])
async def test_own_recordings_of_bad_runs_score_below_good_runs(bad: str) -> None:
    below, not_below, cannot = await ranked(OWN, "good", bad)
    assert len(below) >= 10
    assert (not_below, cannot) == ([], {})


@pytest.mark.slow
@pytest.mark.parametrize("bad", FALLS)
async def test_bad_runs_of_every_framework_score_below_its_happy_run(bad: str) -> None:
    below, not_below, cannot = await ranked(SHARED, "happy", bad)
    print(f"{bad}: {len(below)} sets rank it below; {len(cannot)} cannot tell: {cannot}")
    assert len(below) >= 35
    assert not_below == []
    assert len(cannot) <= 3, cannot
    assert all("captured" in why or "recorded" in why for why in cannot.values()), cannot

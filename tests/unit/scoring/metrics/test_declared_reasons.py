"""Declared reasons match the code and the captures."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Any

import pytest

from pandaeval_collector.base.score import Why
from pandaeval_collector.scoring.metric import (
    JudgedSessionMetric,
    JudgedTraceMetric,
    JudgedTrialMetric,
    JudgedTurnMetric,
    Metric,
    SessionMetric,
    SessionReads,
    TraceMetric,
    TrialMetric,
    TurnMetric,
)
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cli.metrics import whys

METRICS = list(registry((GRADERS,)).values())
_HELPER = re.compile(r"pandaeval_collector\.scoring\.metrics\.\w+\.\w|pandaeval_lab\.graders\._")


def _said_in(module: str) -> set[Why]:
    """Return the reasons used in a module's code."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    declared = {
        id(node)
        for keyword in ast.walk(tree)
        if isinstance(keyword, ast.keyword) and keyword.arg == "unscored"
        for node in ast.walk(keyword)
    }
    return {
        Why[node.attr]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Why"
        and id(node) not in declared
    }


def _own(metric: Metric) -> str:
    folder = GRADERS if metric.level == "trial" else f"pandaeval_collector.scoring.metrics.{metric.level}"
    return f"{folder}.{metric.name}"


def _modules(metric: Metric) -> set[str]:
    """Return the modules of a metric, its helpers and metrics that it uses."""
    own = _own(metric)
    found: set[str] = set()
    waiting = [own]
    while waiting:
        module = waiting.pop()
        found.add(module)
        tree = ast.parse(inspect.getsource(importlib.import_module(module)))
        named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
        waiting += [each for each in named if _HELPER.match(each) and each not in found]
    return found


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_metric_declares_the_reasons_that_its_code_uses(metric: Metric) -> None:
    own = _said_in(_own(metric))
    possible = {why for module in _modules(metric) for why in _said_in(module)}
    if metric.name == "finding_absent":  # passes on the reasons of metrics by code
        possible |= {why for each in METRICS if each.kind == "code" and each.level == "trace" for why in each.unscored}
    assert own <= {*metric.unscored} <= possible


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_common_reasons_are_added_to_the_reasons_of_a_metric(metric: Metric) -> None:
    assert {*metric.unscored, Why.METRIC_ERROR} <= {*whys(metric)}
    waits = metric.level == "trial" or (metric.kind == "llm" and metric.level != "session")
    assert (Why.INCOMPLETE_TRACE in whys(metric)) == (waits or Why.INCOMPLETE_TRACE in metric.unscored)
    assert ({Why.JUDGE_FAILED, Why.NOT_SAMPLED} <= {*whys(metric)}) == (metric.kind == "llm")
    assert [*whys(metric)] == sorted(whys(metric), key=list(Why).index)


DECLARED = {
    "level": "trace",
    "name": "brevity",
    "kind": "code",
    "version": "1",
    "threshold": 0.5,
    "question": "Is it short?",
    "needs": "an answer",
    "evaluate": lambda trace, context: None,
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"level": "day"}, "level 'day' is not scored in this version; write trace or turn or session or trial"),
        ({"name": "My Metric"}, "write small letters"),
        ({"kind": "ai"}, "kind 'ai' is not one of embedding, code, math"),
        ({"version": 1}, "version: write a text"),
        ({"threshold": 3.5}, "threshold 3.5 does not lie in 0..1"),
        ({"threshold": 0.5, "scale": "1-5"}, "threshold 0.5 does not lie in 1..5"),
        ({"scale": "10-1"}, "scale '10-1': write its worst and its best end"),
        ({"threshold": lambda bands: None}, "threshold None does not lie in 0..1"),
        ({"evaluate": None}, "evaluate: write a function"),
        ({"settings": {"words": {"a"}}}, "settings are part of a result's id"),
        ({"level": "turn", "kind": "embedding"}, "kind 'embedding' is not one of code, math"),
        ({"level": "trial", "layer": "mind"}, "layer 'mind': a metric of level trial has one of reasoning, action"),
        ({"level": "turn", "texts": lambda view: []}, "a metric of level turn and kind code: .* 'texts'"),
        ({"signals": ("coherence",)}, "a metric of level trace and kind code: .* 'signals'"),
        ({"kind": "llm"}, "a metric of level trace and kind llm: .* 'ask'"),
        ({"ask": len}, "a metric of level trace and kind code: .* 'ask'"),
        ({"kind": "llm", "ask": len, "reads": SessionReads(earlier=3)}, "level trace and kind llm: .* 'reads'"),
    ],
)
def test_invalid_metric_declaration_is_rejected(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Metric(**DECLARED | changed)


@pytest.mark.parametrize(
    ("changed", "made"),
    [
        ({}, TraceMetric),
        ({"kind": "llm", "ask": len, "rubrics": ()}, JudgedTraceMetric),
        ({"level": "turn", "texts": None, "ask": None}, TurnMetric),
        ({"level": "turn", "kind": "llm", "ask": len}, JudgedTurnMetric),
        ({"level": "session", "signals": ("coherence",)}, SessionMetric),
        ({"level": "session", "kind": "llm", "ask": len}, JudgedSessionMetric),
        ({"level": "trial", "layer": "action"}, TrialMetric),
        ({"level": "trial", "layer": "action", "kind": "llm", "ask": len}, JudgedTrialMetric),
    ],
)
def test_a_metric_is_of_the_class_for_its_level_and_kind(changed: dict[str, Any], made: type) -> None:
    declared = DECLARED | changed
    metric = Metric(**declared)
    assert type(metric) is made
    assert (metric.key, metric.kind) == (f"{declared['level']}.brevity", declared["kind"])


def test_metric_fields_can_be_positional_arguments() -> None:
    assert Metric(*DECLARED.values()) == Metric(**DECLARED)

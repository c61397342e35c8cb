"""What a metric declares about unscored results is what its code says, and what captures make it say."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.score import Why
from pandaeval_collector.scoring.metric import Metric, SessionReads
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cli.metrics import whys

METRICS = list(registry((GRADERS,)).values())
_HELPER = re.compile(r"(pandaeval_collector\.scoring\.metrics\.\w+|pandaeval_lab\.graders)\._")


def _said_in(module: str) -> set[Why]:
    """The whys that the code of a module names, but for where it declares them."""
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


def _own(metric: Metric[Any, Any]) -> str:
    folder = GRADERS if metric.level == "trial" else f"pandaeval_collector.scoring.metrics.{metric.level}"
    return f"{folder}.{metric.name}"


def _modules(metric: Metric[Any, Any]) -> set[str]:
    """That of the metric, and the helpers beside metrics that it takes names from, of which one may say a why."""
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
def test_a_metric_declares_the_whys_that_its_code_names(metric: Metric[Any, Any]) -> None:
    own = _said_in(_own(metric))
    possible = {why for module in _modules(metric) for why in _said_in(module)}
    assert own <= {*metric.unscored} <= possible


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.key)
def test_what_is_said_around_a_metric_is_added(metric: Metric[Any, Any]) -> None:
    assert {*metric.unscored, Why.METRIC_ERROR} <= {*whys(metric)}
    assert (Why.INCOMPLETE_TRACE in whys(metric)) == (metric.level in ("trace", "turn", "trial"))
    assert ({Why.JUDGE_FAILED, Why.NOT_SAMPLED} <= {*whys(metric)}) == (metric.kind == "llm")
    assert [*whys(metric)] == sorted(whys(metric), key=list(Why).index)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"level": "day"},
            "level 'day' is not scored in this version; write trace or turn or session or trial or task",
        ),
        ({"name": "My Metric"}, "write small letters"),
        ({"kind": "ai"}, "kind 'ai' is not one of embedding, llm, code, math"),
        ({"version": 1}, "version: write a text"),
        ({"threshold": 3.5}, "threshold 3.5 does not lie in 0..1"),
        ({"threshold": 0.5, "scale": "1-5"}, "threshold 0.5 does not lie in 1..5"),
        ({"scale": "10-1"}, "scale '10-1': write its worst and its best end"),
        ({"level": "turn", "texts": lambda view: []}, "nothing is embedded for a metric of level turn"),
        ({"threshold": lambda bands: None}, "threshold None does not lie in 0..1"),
        ({"evaluate": None}, "evaluate is no function"),
        ({"kind": "llm"}, "ask and kind llm go together"),
        ({"settings": {"words": {"a"}}}, "settings are part of a result's id"),
    ],
)
def test_what_could_not_be_run_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(registry()["trace.tool_loop"], **changed)


def test_a_judge_compares_no_answers() -> None:
    with pytest.raises(ValueError, match="reads"):
        replace(registry()["trace.confidence"], reads=SessionReads(earlier=3, answers=True))


@pytest.mark.parametrize(
    "changed",
    [
        {"unsettled": None},
        {"reads": None},
        {"reads": SessionReads(later=3)},
        {"reads": SessionReads(earlier=3, answers=True)},
    ],
)
def test_what_is_read_again_is_read_with_earlier_traces(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unsettled and earlier traces"):
        replace(registry()["trace.grounding"], **changed)

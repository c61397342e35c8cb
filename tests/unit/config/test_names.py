"""Metric names and their thresholds."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.config import Config, MetricNames, check_embedder, check_metrics, load

_METRICS = [
    *(("trace", name) for name in ("coherence", "confidence", "plan_quality")),
    *(("turn", name) for name in ("coherence", "helpfulness")),
    ("trial", "plan_quality"),
]
_NAMES = MetricNames(_METRICS)
_ALREADY = "which helpfulness sets already"
_SEVERAL = "is the name of several metrics; write"


def _metrics(**settings: Any) -> Config:
    return load(None, {}, {f"metrics.{name}": value for name, value in settings.items()})


def _messages(config: Config) -> list[str]:
    return [str(problem) for problem in check_metrics(config, _METRICS)]


def test_all_metrics_are_enabled_unless_some_are_named() -> None:
    assert _NAMES.enabled(Config()) == {f"{level}.{name}" for level, name in _METRICS}
    config = _metrics(enabled=["coherence", "trace.confidence"])
    assert _NAMES.enabled(config) == {"trace.coherence", "turn.coherence", "trace.confidence"}
    assert _NAMES.enabled(_metrics(enabled=[])) == frozenset()
    assert check_metrics(config, _METRICS) == []


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        ({"trace.coherence": 0.4, "turn.coherence": 4}, {"trace.coherence": 0.4, "turn.coherence": 4.0}),
        ({"coherence": 4}, {"turn.coherence": 4.0}),
        ({"helpfulness": 3.5, "confidence": 0}, {"turn.helpfulness": 3.5, "trace.confidence": 0.0}),
    ],
)
def test_thresholds_are_resolved_to_metric_keys(thresholds: dict[str, float], expected: dict[str, float]) -> None:
    config = _metrics(thresholds=thresholds)
    assert check_metrics(config, _METRICS) == []
    assert _NAMES.thresholds(config) == expected


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"coherence": 0.5}, f"coherence: {_SEVERAL} trace.coherence or turn.coherence"),
        ({"coherence": 1}, f"coherence: {_SEVERAL} trace.coherence or turn.coherence"),
        (
            {"plan_quality": 2},
            f"plan_quality: {_SEVERAL} trace.plan_quality or trial.plan_quality",
        ),
        ({"trace.coherence": 70}, "trace.coherence: no result can reach 70: scores of trace.coherence end at 1"),
        ({"helpfulness": 5.5}, "helpfulness: no result can reach 5.5: scores of turn.helpfulness end at 5"),
        ({"turn.confidence": 1}, "turn.confidence: unknown metric; did you mean trace.confidence?"),
        ({"helpfulnes": 1}, "helpfulnes: unknown metric; did you mean helpfulness?"),
        ({"zzz": 1}, "zzz: unknown metric; `pandaeval metrics` lists them"),
        (
            {"helpfulness": 3, "turn.helpfulness": 4},
            f"turn.helpfulness: sets turn.helpfulness, {_ALREADY}",
        ),
    ],
)
def test_invalid_thresholds_are_an_error(thresholds: dict[str, float], message: str) -> None:
    assert _messages(_metrics(thresholds=thresholds)) == [f"metrics.thresholds.{message}"]


def test_unknown_metric_names_are_an_error_with_a_suggestion() -> None:
    config = load(None, {}, {"metrics.enabled": ["trace.coherense"], "judge.models": {"helpfullness": "x"}})
    assert _messages(config) == [
        "metrics.enabled[0]: trace.coherense: unknown metric; did you mean trace.coherence?",
        "judge.models.helpfullness: unknown metric; did you mean helpfulness?",
    ]


def test_the_model_of_a_metric_key_overrides_the_model_of_its_name() -> None:
    for order in (1, -1):
        models = dict([("trace.coherence", "a"), ("coherence", "b")][::order])
        config = load(None, {}, {"judge.models": models})
        assert _NAMES.by_key(config.judge.models) == {"trace.coherence": "a", "turn.coherence": "b"}


def test_an_embedder_with_an_unknown_scheme_is_an_error_with_advice() -> None:
    schemes = ["embedded", "litellm"]
    for model in ("embedded", "litellm:openai/text-embedding-3-small"):
        assert check_embedder(load(None, {}, {"embedding.model": model}), schemes) == []
    wrong = {"embeded": "did you mean embedded?", "banana": "known are embedded, litellm"}
    for model, advice in wrong.items():
        problem = check_embedder(load(None, {}, {"embedding.model": model}), schemes)[0]
        assert str(problem) == f'embedding.model: "{model}" is not an embedder; {advice}'

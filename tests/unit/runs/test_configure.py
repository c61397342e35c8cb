"""Validation of run requests."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import Config
from pandaeval_collector.runs.spec import NotAllowedError, RunSpec, check, check_asked, metric_keys


def test_without_a_judge_model_the_error_names_the_judged_metrics() -> None:
    config = Config()
    keys = metric_keys(config, ["tool_loop", "coherence"])
    assert keys == ("trace.coherence", "trace.tool_loop", "turn.coherence")
    with pytest.raises(UserError) as raised:
        check(config, RunSpec(metrics=keys))
    assert str(raised.value) == (
        "turn.coherence: asks a judge; name a model (--model), or set judge.model, "
        "or write trace.coherence for that level alone"
    )
    check(config, RunSpec(metrics=metric_keys(config, ["tool_loop", "trace.coherence"])))
    check(config, RunSpec(metrics=keys, model="openai/any"))


def test_the_error_for_a_metric_of_one_level_suggests_no_other_level() -> None:
    with pytest.raises(UserError) as raised:
        check(Config(), RunSpec(metrics=("trace.confidence",)))
    assert str(raised.value) == "trace.confidence: asks a judge; name a model (--model), or set judge.model"


NAMED = {
    "model": "openai/live",
    "models": {"trace.plan_quality": "openai/plans"},
    "fallbacks": ["openai/fallback"],
}
JUDGED = ("trace.confidence",)


@pytest.mark.parametrize("model", [None, *(f"openai/{name}" for name in ("live", "plans", "fallback"))])
def test_a_run_request_may_choose_a_configured_model(model: str | None) -> None:
    check_asked(Config.model_validate({"judge": NAMED}), RunSpec(JUDGED, model=model, budget_usd=1.0), dry=False)


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("metrics", [JUDGED, ("trace.tool_loop",)])
def test_a_run_request_with_an_unconfigured_model_is_rejected(dry: bool, metrics: tuple[str, ...]) -> None:
    spec = RunSpec(metrics, model="oobabooga/http://evil.example", budget_usd=1.0)
    with pytest.raises(NotAllowedError, match=r"is none that this collector's configuration names \(openai/fallback, "):
        check_asked(Config.model_validate({"judge": NAMED}), spec, dry)
    with pytest.raises(NotAllowedError, match=r"names \(none\)"):
        check_asked(Config(), spec, dry)


@pytest.mark.parametrize("cap", [{}, {"daily_usd": 1.0}, {"daily_usd": 0.0}])
@pytest.mark.parametrize("budget", [None, 0.5])
@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("metrics", [JUDGED, ("trace.tool_loop",)])
def test_a_judged_run_request_needs_a_budget_or_a_daily_limit(
    cap: dict[str, float], budget: float | None, dry: bool, metrics: tuple[str, ...]
) -> None:
    config = Config.model_validate({"judge": {"model": "openai/live", **cap}})
    spec = RunSpec(metrics, budget_usd=budget)
    if metrics is JUDGED and not (cap or budget or dry):
        with pytest.raises(
            NotAllowedError, match=r"asks a judge; give a budget \(--budget USD; .* set judge\.daily_usd$"
        ):
            check_asked(config, spec, dry)
    else:
        check_asked(config, spec, dry)

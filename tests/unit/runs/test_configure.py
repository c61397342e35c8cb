"""What a run asks for is checked before it starts."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import Config
from pandaeval_collector.runs.configure import check, metric_keys
from pandaeval_collector.runs.spec import RunSpec


def test_without_a_judge_the_metrics_that_ask_one_are_named() -> None:
    config = Config()
    keys = metric_keys(config, ["tool_loop", "coherence"])
    assert keys == ("trace.coherence", "trace.tool_loop", "turn.coherence")
    with pytest.raises(UserError) as said:
        check(config, RunSpec(metrics=keys))
    assert str(said.value) == (
        "turn.coherence: asks a judge; name a model (--model), or set judge.model, "
        "or write trace.coherence for that level alone"
    )
    check(config, RunSpec(metrics=metric_keys(config, ["tool_loop", "trace.coherence"])))
    check(config, RunSpec(metrics=keys, model="openai/any"))


def test_a_name_of_one_level_has_no_other_to_offer() -> None:
    with pytest.raises(UserError) as said:
        check(Config(), RunSpec(metrics=("trace.confidence",)))
    assert str(said.value) == "trace.confidence: asks a judge; name a model (--model), or set judge.model"

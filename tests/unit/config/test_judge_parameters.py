"""Parameters of the judge's calls: what is set for all, what is different for single models, what they may not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.config import ConfigError, load
from pandaeval_collector.judge.call import CallParameters
from pandaeval_collector.runs.settings import judge, scoring

CONFIG = """
judge:
  model: openai/gpt-5-mini
  reasoning_effort: low
  extra: {top_p: 0.5}
  parameters:
    openai/o3: {max_tokens: 20000, extra: {seed: 1}}
    openai/local: {response_format: schema, context_tokens: 5000, reasoning_effort: none}
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_is_set_for_a_model_is_beside_what_is_set_for_all(tmp_path: Path) -> None:
    made = judge(load(_file(tmp_path, CONFIG), {}))
    assert made is not None
    assert made.setup.defaults == CallParameters(reasoning_effort="low", extra={"top_p": 0.5})
    assert made.setup.parameters == {
        "openai/o3": CallParameters(20_000, "low", extra={"top_p": 0.5, "seed": 1}),
        "openai/local": CallParameters(None, "none", "schema", 5000, {"top_p": 0.5}),
    }


def test_what_changes_answers_changes_the_ids_of_results(tmp_path: Path) -> None:
    settings = scoring(load(_file(tmp_path, CONFIG), {})).judge
    plain = scoring(load(_file(tmp_path, "judge: {model: openai/gpt-5-mini}"), {})).judge
    assert settings is not None
    assert plain is not None
    assert settings.asked_with("openai/gpt-5-mini") != settings.asked_with("openai/o3")
    assert plain.asked_with("openai/gpt-5-mini") == "", "ids are as they were"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("extra: {api_key: k}", "may not hold api_key"),
        ("parameters: {m: {extra: {messages: []}}}", "may not hold messages"),
        ("parameters: {m: {temperature: 0}}", "temperature"),
        ("context_tokens: 399", "400"),
        ("max_tokens: 0", "max_tokens"),
        ("reasoning_effort: huge", "reasoning_effort"),
    ],
)
def test_what_cannot_be_set_is_said(tmp_path: Path, given: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(_file(tmp_path, f"judge: {{model: m, {given}}}"), {})
    assert says in str(caught.value.problems[0])

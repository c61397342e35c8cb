"""Parameters of judge calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.config import ConfigError, load
from pandaeval_collector.runs.settings import judge, scoring

CONFIG = """
judge:
  model: openai/gpt-5-mini
  context_tokens: 5000
  parameters: {reasoning_effort: low, top_p: 0.5, max_tokens: 20000, response_format: {type: json_schema}}
"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_configured_parameters_are_in_the_judge_settings(tmp_path: Path) -> None:
    made = judge(load(_file(tmp_path, CONFIG), {}))
    assert made is not None
    assert made.context_tokens == 5000
    assert made.parameters == {
        "reasoning_effort": "low",
        "top_p": 0.5,
        "max_tokens": 20_000,
        "response_format": {"type": "json_schema"},
    }


def test_answer_parameters_hold_only_parameters_that_change_answers(tmp_path: Path) -> None:
    settings = scoring(load(_file(tmp_path, CONFIG), {})).judge
    plain = scoring(load(_file(tmp_path, "judge: {model: m, parameters: {max_tokens: 9}}"), {})).judge
    assert settings is not None
    assert plain is not None
    assert settings.answer_parameters == '{"reasoning_effort": "low", "top_p": 0.5}'
    assert plain.answer_parameters == "", "result IDs do not change"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("parameters: {api_key: k}", "may not hold api_key"),
        ("parameters: {messages: []}", "may not hold messages"),
        ("context_tokens: 399", "400"),
        ("parameters: {max_tokens: 0}", "max_tokens must be a whole number"),
        ("parameters: {max_tokens: many}", "max_tokens must be a whole number"),
        ("parameters: {response_format: schema}", "json_schema"),
    ],
)
def test_invalid_judge_parameters_are_an_error(tmp_path: Path, given: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(_file(tmp_path, f"judge: {{model: m, {given}}}"), {})
    assert message in str(caught.value.problems[0])

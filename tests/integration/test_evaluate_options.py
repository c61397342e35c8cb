"""Judge options of ``pandaeval evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.judge import JudgeServer
from support.judged_files import behave
from support.made_traces import Composer

JUDGE = """
judge:
  model: openai/gpt-4o-mini
  api_base: {url}
  api_key_env: JUDGE_KEY
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write eight traces of two services, length-delimited."""
    path, composer = tmp_path_factory.mktemp("made") / "traces.pb", Composer(11)
    with path.open("wb") as file:
        for _ in range(8):
            data = composer.trace().request().SerializeToString()
            length, written = len(data), bytearray()
            while length > 127:
                written.append(length & 127 | 128)
                length >>= 7
            file.write(bytes([*written, length]) + data)
    return path


def _evaluate(
    traces: Path, folder: Path, server: JudgeServer | None, config: str, *options: str
) -> tuple[Result, list[dict[str, Any]]]:
    path = folder / "pandaeval.yaml"
    path.write_text((JUDGE.format(url=server.url) if server else "") + config)
    done = CliRunner().invoke(
        app,
        ["evaluate", str(traces), "--config", str(path), "--format", "json", *options],
        env={"JUDGE_KEY": "sk-test"},
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_model_option_overrides_judge_models_in_requests_and_results(traces: Path, tmp_path: Path) -> None:
    models = "  models: {trace.confidence: openai/gpt-4o}\n"
    with JudgeServer(behave) as server:
        _evaluate(traces, tmp_path, server, models, "--metrics", "confidence")
        configured = {body["model"] for _, body in server.requests}
        server.requests.clear()
        done, results = _evaluate(
            traces, tmp_path, server, models, "--metrics", "confidence", "--model", "openai/gpt-4.1-mini"
        )
    assert done.exit_code == 0, done.output
    assert configured == {"gpt-4o"}
    assert {body["model"] for _, body in server.requests} == {"gpt-4.1-mini"}
    assert {each["evaluator"]["model"] for each in results} == {"openai/gpt-4.1-mini"}


@pytest.mark.slow
def test_runs_excluded_by_judge_only_or_where_are_not_judged(traces: Path, tmp_path: Path) -> None:
    with JudgeServer(behave) as server:
        _, everything = _evaluate(traces, tmp_path, server, "", "--metrics", "confidence,response")
        calls = len(server.requests)
        services = sorted({each["service"] for each in everything})
        server.requests.clear()
        _, only = _evaluate(
            traces, tmp_path, server, f"  only: {{service.name: [{services[0]}]}}\n", "--metrics", "confidence,response"
        )
        judged = len(server.requests)
        server.requests.clear()
        done, where = _evaluate(
            traces, tmp_path, server, "", "--metrics", "confidence,response", "--where", f"service={services[0]}"
        )
        chosen = len(server.requests)
    assert done.exit_code == 0, done.output
    assert 0 < judged == chosen < calls
    assert {each["service"] for each in only if each["metric"] == "confidence"} == {services[0]}
    assert {each["service"] for each in only if each["metric"] == "response"} == {*services}
    assert {each["service"] for each in where} == {services[0]}
    ids = {each["id"] for each in where}
    assert ids == {each["id"] for each in everything if each["service"] == services[0]}


def test_model_option_overrides_models_of_file_and_environment_for_every_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pandaeval_collector.runs.settings import scoring
    from pandaeval_lab.cli.evaluate import EvaluateOptions, config_of

    path = tmp_path / "pandaeval.yaml"
    path.write_text("judge: {model: openai/gpt-4o-mini, models: {trace.confidence: openai/gpt-4o}}")
    monkeypatch.setenv("PANDAEVAL_JUDGE__MODELS__TRACE__PLAN_QUALITY", "openai/gpt-4o")
    options = (EvaluateOptions((), path, model=model) for model in (None, "openai/gpt-4.1-mini"))
    of_file, of_option = (scoring(config_of(each)).judge for each in options)
    assert of_file is not None
    assert of_option is not None
    assert of_file.model_of("trace.confidence") == of_file.model_of("trace.plan_quality") == "openai/gpt-4o"
    assert {of_option.model, *of_option.models.values()} == {"openai/gpt-4.1-mini"}


def test_where_without_matches_or_with_an_unknown_field_is_explained(traces: Path, tmp_path: Path) -> None:
    done, results = _evaluate(traces, tmp_path, None, "", "--where", "agent=nobody")
    assert (done.exit_code, results) == (2, [])
    assert "--where agent=nobody: no trace in the input has this agent" in done.stderr
    done, results = _evaluate(traces, tmp_path, None, "", "--where", "time=..2001-01-01")
    assert (done.exit_code, results) == (0, []), "a filter with valid names must not be an error"
    assert "no trace in the input matches (agents: helper; services: " in done.stderr
    done, results = _evaluate(traces, tmp_path, None, "", "--where", "agnet=helper")
    assert (done.exit_code, results) == (2, [])
    assert "known: agent, service" in done.stderr


def test_a_session_metric_alone_scores_as_with_all_metrics_and_is_the_only_result(traces: Path, tmp_path: Path) -> None:
    _, everything = _evaluate(traces, tmp_path, None, "")
    done, alone = _evaluate(traces, tmp_path, None, "", "--metrics", "agent_reliability")
    assert done.exit_code == 0, done.output
    wanted = [(each["id"], each["score"]) for each in everything if each["metric"] == "agent_reliability"]
    assert [(each["id"], each["score"]) for each in alone] == wanted
    assert wanted
    configured, again = _evaluate(traces, tmp_path, None, "metrics: {enabled: [session.agent_reliability]}")
    assert configured.exit_code == 0, configured.output
    assert [(each["id"], each["score"]) for each in again] == wanted


def test_a_requested_metric_without_results_is_explained(traces: Path, tmp_path: Path) -> None:
    done, results = _evaluate(traces, tmp_path, None, "", "--metrics", "agent_consistency")
    assert (done.exit_code, results) == (0, [])
    assert "session.agent_consistency has no result: the metric does not apply to the input" in done.stderr
    assert "confidence, which needs a judge" in done.stderr

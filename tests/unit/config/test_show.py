"""Secrets stay out of shown configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandaeval_collector.config import (
    Config,
    ConfigError,
    check_machine,
    effective,
    load,
    resolve,
    secret,
    to_yaml,
)


def _file(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_shown_configuration_names_its_sources_and_can_be_loaded_again(tmp_path: Path) -> None:
    path = _file(tmp_path, "close:\n  quiet: 3s\nmetrics:\n  thresholds: {trace.coherence: 0.4}\n")
    resolved = resolve(path, {"PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o"}, {"judge.concurrency": 2})
    shown = to_yaml(resolved.config, resolved.origins)
    assert f"  quiet: 3s  # {path}:2:10\n" in shown
    assert f"    trace.coherence: 0.4  # {path}:4:33\n" in shown
    assert "  model: openai/gpt-4o  # environment PANDAEVAL_JUDGE__MODEL\n" in shown
    assert "  concurrency: 2  # command line\n" in shown
    assert "  idle: 180s\n" in shown
    again = tmp_path / "again.yaml"
    again.write_text(shown, encoding="utf-8")
    assert load(again, {}) == resolved.config


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    text = (
        "server: {token_env: PANDAEVAL_TOKEN}\n"
        "judge: {api_key_env: JUDGE_KEY, api_base: 'https://me:p@ss/w@judge.example/v1?key=abc'}\n"
        "exporters: {otlp: {endpoint: 'http://user:hunter2@backend:4317'}}\n"
    )
    environ = {"PANDAEVAL_TOKEN": "token-value", "JUDGE_KEY": "key-value"}
    resolved = resolve(_file(tmp_path, text), environ)
    for shown in (to_yaml(resolved.config, resolved.origins), str(effective(resolved.config))):
        assert "https://***@judge.example/v1?***" in shown
        assert "http://***@backend:4317" in shown
        assert "PANDAEVAL_TOKEN" in shown
        for hidden in ("token-value", "key-value", "hunter2", "p@ss", "abc", "user"):
            assert hidden not in shown
    assert resolved.config.exporters.otlp.endpoint == "http://user:hunter2@backend:4317"


def test_a_secret_is_read_from_its_variable_and_must_be_set() -> None:
    assert secret(None, {}) is None
    assert secret("TOKEN", {"TOKEN": " abc\n"}) == "abc"
    for environ in ({}, {"TOKEN": " "}):
        with pytest.raises(ConfigError, match=r"^the environment variable TOKEN is not set or is empty$"):
            secret("TOKEN", environ)


def test_missing_variables_files_and_folders_are_reported_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    text = f"server: {{token_env: A, tls: {{cert: {tmp_path}/no.crt, key: no.key}}}}\njudge: {{api_key_env: B}}\n"
    resolved = resolve(_file(tmp_path, text), {"B": "set"}, {"store.path": str(tmp_path / "taken")})
    problems = resolved.located(check_machine(resolved.config, {"B": "set"}))
    assert [(problem.key, str(problem.place)) for problem in problems] == [
        ("server.token_env", f"{tmp_path / 'config.yaml'}:1:21"),
        ("server.tls", f"{tmp_path / 'config.yaml'}:1:29"),
        ("store.path", "command line"),
    ]
    assert problems[0].message == "the environment variable A is not set or is empty"
    assert check_machine(Config(), {}) == []


def test_secrets_in_parameters_of_the_judge_are_masked() -> None:
    parameters = {"aws_secret_access_key": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY", "aws_region_name": "eu-west-1"}
    config = load(None, {}, {"judge.parameters": parameters, "judge.api_key_env": "JUDGE_API_KEY"})
    judge = effective(config)["judge"]
    assert judge["parameters"] == {"aws_secret_access_key": "***", "aws_region_name": "eu-west-1"}
    assert judge["api_key_env"] == "JUDGE_API_KEY"

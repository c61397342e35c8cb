"""Recipe pages: valid examples, existing names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from pandaeval_collector.config import load
from pandaeval_lab.replay.files import Input, Request
from support.commands import whole_app
from support.deploy import DEPLOY, ROOT, check, read

DOCS = ROOT / "docs"
_MINIMAL = DEPLOY / "kubernetes" / "sidecar-minimal.yaml"


def _blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["start/openai-agents", "start/langgraph", "guides/ci", "guides/pytest"])
def test_python_examples_compile(page: str) -> None:
    blocks = _blocks(page, "python")
    assert blocks
    for block in blocks:
        compile(block, page, "exec")


def test_examples_of_judge_providers_are_valid_configurations(tmp_path: Path) -> None:
    blocks = _blocks("guides/judge-providers", "yaml")
    assert len(blocks) == 4
    file = tmp_path / "config.yaml"
    for block in blocks:
        file.write_text(block)
        assert load(file, {}).judge.model


def test_the_ci_workflow_runs_pandaeval_with_valid_gates(tmp_path: Path) -> None:
    gates, workflow, *_ = _blocks("guides/ci", "yaml")
    (tmp_path / "agents.yml").write_text(workflow)
    (tmp_path / "pandaeval.yaml").write_text(gates)
    assert load(tmp_path / "pandaeval.yaml", {}).metrics.thresholds
    steps = yaml.safe_load(workflow)["jobs"]["evaluate"]["steps"]
    (command,) = (step["run"] for step in steps if step.get("run", "").startswith("pandaeval"))
    assert "--config pandaeval.yaml" in command


def test_the_workflow_fits_githubs_schema(tmp_path: Path) -> None:
    file = tmp_path / "agents.yml"
    file.write_text(_blocks("guides/ci", "yaml")[1])
    check("check_jsonschema", "--builtin-schema", "vendor.github-workflows", file)


@pytest.mark.parametrize(("at", "schema"), [(2, "vendor.github-workflows"), (3, "vendor.gitlab-ci")])
def test_pipelines_with_repeated_trials_fit_their_schemas(at: int, schema: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline.yml").write_text(_blocks("guides/ci", "yaml")[at])
    check("check_jsonschema", "--builtin-schema", schema, tmp_path / "pipeline.yml")


def test_commands_of_pipelines_with_repeated_trials_exist() -> None:
    _, _, workflow, gitlab = _blocks("guides/ci", "yaml")
    known = {command.name: command for command in _commands()}
    lines = re.findall(r"pandaeval (cases run|evaluate|passk) (.*)", workflow + gitlab)
    assert {name for name, _ in lines} == {"cases run"}
    for name, rest in lines:
        options = {option for each in known[name].params for option in each.opts}
        assert set(re.findall(r" (--[\w-]+)", rest)) <= options, name


def _commands() -> Iterator[Any]:
    for command in get_command(whole_app()).commands.values():  # type: ignore[attr-defined]
        yield command
        for inner in getattr(command, "commands", {}).values():
            inner.name = f"{command.name} {inner.name}"
            yield inner


def test_the_file_exporter_example_writes_a_file_that_can_be_read(tmp_path: Path) -> None:
    (exporter,) = _blocks("guides/ci", "python")
    program = f"{exporter}\nprovider.get_tracer('t').start_span('invoke_agent desk').end()\nprovider.shutdown()\n"
    file = tmp_path / "traces"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    subprocess.run([sys.executable, "-c", program, file], check=True, env={**os.environ, "PYTHONPATH": path})
    (request,) = Input(str(file)).requests()
    assert isinstance(request, Request)
    assert b"invoke_agent desk" in request.data


def test_alerts_and_receivers_of_the_routing_exist() -> None:
    alertmanager = read(DEPLOY / "prometheus" / "alertmanager.yaml")
    rules = [rule for group in read(DEPLOY / "prometheus" / "rules.yaml")["groups"] for rule in group["rules"]]
    known = {rule["alert"] for rule in rules if "alert" in rule}
    named = set(re.findall(r"PandaEval\w+", (DEPLOY / "prometheus" / "alertmanager.yaml").read_text()))
    named |= set(re.findall(r"PandaEval\w+", (DOCS / "operate" / "runbook.md").read_text()))
    assert named
    assert named <= known
    assert {receiver["name"] for receiver in alertmanager["receivers"]} >= _receivers(alertmanager["route"])
    assert {"critical"} == {part.split('"')[1] for each in alertmanager["route"]["routes"] for part in each["matchers"]}
    assert "critical" in {rule["labels"]["severity"] for rule in rules if "alert" in rule}


def _receivers(route: dict[str, Any]) -> set[str]:
    return {route["receiver"]} | {name for each in route.get("routes", []) for name in _receivers(each)}


def test_the_minimal_sidecar_is_short_and_configured(tmp_path: Path) -> None:
    text = _MINIMAL.read_text()
    assert len(text.splitlines()) <= 30
    pod = yaml.safe_load(text)["spec"]
    (container,) = pod["initContainers"]
    config = load(None, {each["name"]: each["value"] for each in container["env"]})
    assert config.server.health == "0.0.0.0:4329"
    assert config.store.on_shutdown == "decide"
    assert config.store.path in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert pod["containers"][0]["env"][0]["value"].endswith(config.server.grpc)

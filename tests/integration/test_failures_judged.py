"""YAML metrics and failure groups through command and killed collector."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, question_of, text_of, verdict
from support.made_traces import Composer
from support.pages import files_of
from support.senders import HttpSender

_NUMBERED = re.compile(r"^(\d+)\. \[pushy\]", re.MULTILINE)
CAUSE = {"title": "Sells without being asked", "description": "It offers cards to everybody.", "severity": "medium"}


def behave(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Rate every tone 4, and every run pushy for one cause."""
    question = question_of(body)
    if "Is the tone right" in question:
        fields: dict[str, Any] = {"reason": "One casual word.", "score": 4}
    elif "push products" in question:
        fields = {"reason": f"It offered three cards in run {number}.", "label": "pushy"}
    else:
        shown = "".join(text_of(message) for message in body["messages"])
        fields = {"groups": [{**CAUSE, "failures": [int(each) for each in _NUMBERED.findall(shown)]}]}
    reply = json.loads(verdict(body))
    return JudgeAnswer(json.dumps({"instructed": False, "echo": reply["echo"], **fields}))


def _settings(folder: Path, url: str, more: str = "") -> Path:
    path = folder / "pandaeval.yaml"
    module = files_of("guides/custom-metrics.md", folder)["house.yaml"]
    path.write_text(
        f"metrics: {{modules: ['{module}'], thresholds: {{tone: 4.5}}}}\n"
        f"judge: {{model: openai/gpt-4o-mini, api_base: {url}, api_key_env: JUDGE_KEY, delay: 0s}}\n{more}"
    )
    return path


def test_yaml_metrics_are_judged_and_gated_and_their_failures_are_grouped(tmp_path: Path) -> None:
    composer = Composer(11)
    made = [composer.trace().request() for _ in range(5)]
    (tmp_path / "traces.pb").write_bytes(b"".join(_delimited(each.SerializeToString()) for each in made))
    traces = tmp_path / "traces.pb"
    with JudgeServer(behave) as server:
        config = _settings(tmp_path, server.url)
        command = ["evaluate", str(traces), "--config", str(config), "--metrics", "tone,upsell", "--format", "json"]
        done = CliRunner().invoke(app, command, env={"JUDGE_KEY": "sk-test"})
    results = [json.loads(line) for line in done.stdout.splitlines()]
    tones = [each for each in results if each["metric"] == "tone" and each["outcome"] == "scored"]
    pushy = [each for each in results if each["label"] == "pushy"]
    assert done.exit_code == 1, done.output
    assert {(each["score"], each["raw"], each["scale"], each["success"]) for each in tones} == {
        (0.75, 4.0, "1-5", False)
    }
    assert "failed: trace.tone (threshold 4.5): the mean of" in done.stderr
    assert "failures (gates" not in done.stderr, "the declared severity is high, and only critical failures have a gate"
    groups = [each["metadata"]["failure_group"] for each in pushy]
    assert len(pushy) == len(tones) > 2
    assert {(group["title"], group["severity"], group["occurrences"]) for group in groups} == {
        ("Sells without being asked", "high", len(pushy))
    }
    assert len({group["id"] for group in groups}) == 1


def _delimited(data: bytes) -> bytes:
    length, written = len(data), bytearray()
    while length > 127:
        written.append(length & 127 | 128)
        length >>= 7
    return bytes([*written, length]) + data


@pytest.mark.slow
def test_failure_groups_survive_a_kill_of_the_collector(tmp_path: Path) -> None:
    composer = Composer(5)
    variables = {"JUDGE_KEY": "sk-test", "PANDAEVAL_METRICS__ENABLED": "[trace.upsell]"}
    with JudgeServer(behave) as server:
        config = _settings(tmp_path, server.url)
        with CollectorProcess(tmp_path / "c", variables, arguments=["--config", str(config)]) as collector:
            collector.start()
            _send(collector, composer, 4)
            collector.until(lambda: len(_pushy(collector)) > 1 and collector.at_rest(), "judged", 120.0)
            before = _groups(collector)
            collector.kill()
            collector.start()
            assert _groups(collector) == before
            _send(collector, composer, 4)
            many = len(_pushy(collector))
            collector.until(lambda: len(_pushy(collector)) > many and collector.at_rest(), "judged", 120.0)
            after, incident_of = _groups(collector), _incident_of(collector)
            metrics = httpx.get(f"http://127.0.0.1:{collector.health_port}/metrics", timeout=60).text
            pushy = _pushy(collector)
            with collector.database() as database:
                series = "SELECT attributes, count FROM series WHERE name = 'pandaeval.failures'"
                counted = database.execute(series).fetchall()
    assert set(before) <= set(after)
    groups = {each["id"]: each["metadata"]["failure_group"]["id"] for each in pushy}
    named = Counter(incident_of[group] for group in groups.values())
    assert dict(named) == after
    assert sum(count for _, count in counted) == sum(after.values())
    assert all('"pandaeval.failure.label","pushy"' in attributes for attributes, _ in counted)
    gauges = re.findall(r"^pandaeval_failure_groups\w*\{[^}]*group=\"(\w+)\"[^}]*\} (\d+)", metrics, re.MULTILINE)
    assert {group: int(float(value)) for group, value in gauges} == after


def _send(collector: CollectorProcess, composer: Composer, count: int) -> None:
    door = HttpSender(collector.http)
    for _ in range(count):
        assert door.send(composer.trace().request()).acknowledged
    door.close()


def _pushy(collector: CollectorProcess) -> list[dict[str, Any]]:
    return [each for each in collector.results() if each["label"] == "pushy"]


def _groups(collector: CollectorProcess) -> dict[str, int]:
    return {each["id"]: each["runs"] for each in _incidents(collector)}


def _incident_of(collector: CollectorProcess) -> dict[str, str]:
    """Return the incident of each group. Groups with one cause share an incident."""
    return {group: each["id"] for each in _incidents(collector) for group in each["ids"]}


def _incidents(collector: CollectorProcess) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = httpx.get(f"{collector.http}/api/v1/incidents", timeout=60).json()["incidents"]
    return items

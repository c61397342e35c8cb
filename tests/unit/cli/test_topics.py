"""``pandaeval topics``: what it prints makes the topics that the configuration names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pandaeval_collector.cli import app


def _printed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["topics", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_make_the_topics_that_the_configuration_names(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("kafka: {brokers: 'k1:9092', topic: my_spans}\nexporters: {kafka: {topic: my.scores}}\n")
    printed = _printed("--config", str(config)).splitlines()
    spans, members, scores, letters = (shlex.split(line) for line in printed)
    assert [each[each.index("--topic") + 1] for each in (spans, members, scores, letters)] == [
        "my_spans",
        "eval.traces",
        "my.scores",
        "eval.dlq",
    ]
    assert spans[spans.index("--bootstrap-server") + 1] == "k1:9092"
    assert spans[spans.index("--partitions") + 1] == "48"
    assert "retention.ms=172800000" in spans
    assert "max.message.bytes=10485760" in spans
    assert "min.insync.replicas=2" in spans
    assert "retention.ms=259200000" in members, "a day longer: as long as a session may be open"
    assert "cleanup.policy=compact,delete" in scores


def test_one_broker_needs_one_replica() -> None:
    assert "min.insync.replicas=1" in _printed("--replicas", "1").splitlines()[0]


@pytest.mark.parametrize("form", ["strimzi", "bitnami"])
def test_other_forms_say_the_same(form: str) -> None:
    documents = list(yaml.safe_load_all(_printed("--as", form, "--partitions", "12")))
    if form == "bitnami":
        [values] = documents
        found = [(each["name"], each["partitions"]) for each in values["provisioning"]["topics"]]
    else:
        found = [(each["spec"]["topicName"], each["spec"]["partitions"]) for each in documents]
    assert found == [("otlp_spans", 12), ("eval.traces", 12), ("eval.scores", 6), ("eval.dlq", 1)]


def test_a_retention_that_is_none_is_refused() -> None:
    done = CliRunner().invoke(app, ["topics", "--retention", "soon"])
    assert done.exit_code == 2

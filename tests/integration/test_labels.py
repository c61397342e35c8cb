"""Labels become corrected pass rates in /metrics."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from pandaeval_collector.cli import app
from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, verdict
from support.labels import event, request
from support.made_traces import Composer
from support.senders import GrpcSender, HttpSender

ABOUT = {"gen_ai_evaluation_name": "confidence", "pandaeval_level": "trace"}


def flatters(number: int, body: dict[str, Any]) -> JudgeAnswer:
    """Pass five of six."""
    return JudgeAnswer(verdict(body, confidence=0.3 if not number % 6 else 0.9))


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[CollectorProcess]:
    with JudgeServer(flatters) as server:
        settings = {
            "PANDAEVAL_JUDGE__DETAIL": "all",
            "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
            "PANDAEVAL_JUDGE__API_BASE": server.url,
            "PANDAEVAL_JUDGE__API_KEY_ENV": "SOME_KEY",
            "PANDAEVAL_JUDGE__DELAY": "0s",
            "PANDAEVAL_METRICS__ENABLED": "[trace.confidence]",
            "SOME_KEY": "sk-any",
        }
        with CollectorProcess(tmp_path, settings) as process:
            yield process.start()


def scored(collector: CollectorProcess) -> dict[str, dict[str, Any]]:
    return {each["trace_id"]: each for each in collector.results() if each["outcome"] == "scored"}


def rates(collector: CollectorProcess) -> dict[str, float]:
    """Return the gauges summed over agents."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{collector.health_port}/metrics", timeout=60).read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("pandaeval_pass_rate"):
                assert sample.labels.items() >= ABOUT.items()
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def command(collector: CollectorProcess, *arguments: str) -> str:
    outcome = CliRunner().invoke(app, [*arguments], env={"PANDAEVAL_DATA": str(collector.data), "COLUMNS": "200"})
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_labels_become_pass_rates_and_change_no_score(collector: CollectorProcess, tmp_path: Path) -> None:
    composer, http, grpc = Composer(5), HttpSender(collector.http), GrpcSender(collector.grpc)
    for _ in range(90):
        assert grpc.send(composer.trace(2).request()).acknowledged
    collector.until(lambda: collector.at_rest() and len(scored(collector)) >= 55, "judged", 120.0)
    assert rates(collector) == {}
    units = sorted(scored(collector))

    forged = event("confidence", label="fail", annotator="ada", trace=bytes.fromhex(units[0]))
    assert http.send(request(forged)).acknowledged, "it must be accepted but ignored, because any agent can send it"

    file = tmp_path / "labels.csv"
    rows = [f"{unit},confidence,{'fail' if number < 16 else 'pass'}" for number, unit in enumerate(units)]
    file.write_text("trace_id,metric,label\n" + "\n".join(rows) + "\n")
    output = command(collector, "labels", "import", str(file))
    assert output.startswith(f"{len(units)} new, 0 changed, 0 as before")
    urllib.request.urlopen(f"{collector.http}/api/v1/overview", timeout=60)  # starts the reader, which computes rates
    collector.until(lambda: len(rates(collector)) == 4, "calculated", 60.0)
    found = rates(collector)
    labelled = len(units)
    assert found["pandaeval_pass_rate_labels"] == labelled
    low, value, high = (found[f"pandaeval_pass_rate{end}"] for end in ("_low", "", "_high"))
    assert value == pytest.approx((labelled - 16) / labelled, abs=0.05)
    assert 0.4 < low < value < high < 0.95
    assert f"{value:.3f}" in output
    with urllib.request.urlopen(f"{collector.http}/api/v1/rates", timeout=60) as answer:
        shares = json.load(answer)["corrected"]
    assert sum(each["value"] for each in shares) == pytest.approx(value)
    assert {(each["metric"], each["labels"]) for each in shares} == {("trace.confidence", labelled)}

    assert all(each["revision"] == 1 for each in collector.results()), "no label may create a revision"
    assert collector.gauge("accounting_residual") == 0
    assert command(collector, "labels", "export").count("\n") == labelled + 1
    assert "no judged run without a label" in command(collector, "labels", "next")
    calibrated = command(collector, "calibrate", str(file), "--results", str(collector.results_file))
    assert "openai/gpt-4o-mini as a judge of trace.confidence" in calibrated, "the judge must have its configured name"
    http.close()
    grpc.close()
    assert collector.stop() == 0

"""Repeated cases and a stream's gate in a running collector: gauges at /metrics, over a restart too."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.collector import CollectorProcess
from support.trials import run

pytestmark = pytest.mark.slow
SETTINGS = {
    "PANDAEVAL_TRIALS__METRICS": "[trace.response]",
    "PANDAEVAL_TRIALS__K": "[1, 2]",
    "PANDAEVAL_TRIALS__INTERVAL": "100ms",
    "PANDAEVAL_GATES__STREAM__METRICS": "[response]",
    "PANDAEVAL_METRICS__ENABLED": "[trace.response]",
}


def gauges(collector: CollectorProcess) -> dict[str, float]:
    text = urllib.request.urlopen(f"http://127.0.0.1:{collector.health_port}/metrics", timeout=60).read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith(("pandaeval_pass_pow_k", "pandaeval_stream")):
                found[sample.name.removeprefix("pandaeval_") + sample.labels.get("k", "")] = sample.value
                assert sample.labels.get("pandaeval_case", "refund") == "refund"
    return found


def send(collector: CollectorProcess, number: int) -> None:
    body = json.dumps(run(number, case="refund", trial=str(number))).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"{collector.http}/v1/traces", body, headers)
    assert urllib.request.urlopen(asked, timeout=60).status == 200


def test_gauges_follow_the_trials_and_outlive_a_restart(tmp_path: Path) -> None:
    with CollectorProcess(tmp_path, SETTINGS) as process:
        collector = process.start()
        for number in range(1, 5):
            send(collector, number)
        collector.until(lambda: gauges(collector).get("pass_pow_k_trials") == 4, "trials counted", 120.0)
        found = gauges(collector)
        assert found["pass_pow_k_ci_low2"] < found["pass_pow_k2"] < found["pass_pow_k_ci_high2"]
        assert found["stream_results"] == 4
        assert found["stream_alarm"] == 0
        collector.stop()
        collector.start()
        collector.until(lambda: gauges(collector) == found, "the same again")

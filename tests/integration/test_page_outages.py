"""The live page while the judge and a sink are down."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from support.chromium import Page, chromium
from support.collector import CollectorProcess
from support.ports import free_ports
from support.ungrounded import booking, post

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)")


def test_pages_show_that_the_judge_and_a_sink_are_down(tmp_path: Path) -> None:
    assert PROGRAM is not None
    sink, model = free_ports(2)
    settings = {
        "PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": f"127.0.0.1:{sink}",
        "PANDAEVAL_EXPORTERS__OTLP__INSECURE": "true",
        "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
        "PANDAEVAL_JUDGE__API_BASE": f"http://127.0.0.1:{model}/v1",
        "PANDAEVAL_SESSION__IDLE": "1s",
        "OPENAI_API_KEY": "none",
    }
    with CollectorProcess(tmp_path / "collector", settings) as running, Page(PROGRAM, tmp_path / "browser") as page:
        running.start()
        post(running.http, booking())
        running.until(lambda: _overview(running)["sinks_down"] == ["otlp"], "the sink is down")
        running.until(lambda: _overview(running)["judge_error"] is not None, "the judge is down")
        page.visit(f"{running.http}/#/agents")
        assert "The judge openai/gpt-4o-mini does not answer." in page.text(".outage")
        assert "Error: " not in page.text(".outage"), "no exception names may be shown"
        assert "The exporter otlp cannot deliver." in page.text(".outage")
        page.visit(f"{running.http}/#/")
        assert page.count(".outage") == 1
        assert "Every applicable metric has a score" not in page.text()
        assert page.complaints == []


def _overview(running: CollectorProcess) -> dict[str, object]:
    return dict(httpx.get(f"{running.http}/api/v1/overview", timeout=120.0).json())

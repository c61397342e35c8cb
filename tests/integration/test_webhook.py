"""A running collector with a webhook."""

from __future__ import annotations

from pathlib import Path

from support.collector import CollectorProcess
from support.incident_mix import mix
from support.processors import until
from support.ungrounded import booking, post
from support.webhook_server import HANG, SECRET, webhook_server


def _has_noted(collector: CollectorProcess) -> bool:
    with collector.database() as database:
        return database.execute("SELECT 1 FROM meta WHERE key = 'cursor:webhook'").fetchone() is not None


def test_a_hanging_webhook_server_delays_no_score_and_a_restart_repeats_no_event(tmp_path: Path) -> None:
    with webhook_server() as server:
        settings = {"PANDAEVAL_EXPORTERS__WEBHOOK__URL_ENV": "HOOK", "HOOK": server.url}
        with CollectorProcess(tmp_path, settings) as collector:
            collector.start()
            collector.until(lambda: _has_noted(collector), "with a note of the incidents before")
            post(collector.http, mix(3))
            collector.until(lambda: len(collector.results()) > 0 and collector.at_rest(), "at rest")
            collector.stop()
            server.statuses = [HANG]
            collector.start()
            until(lambda: bool(server.posts), "with a post")
            before = len(collector.results())
            post(collector.http, booking())
            collector.until(lambda: len(collector.results()) > before and collector.at_rest(), "at rest")
            assert len(server.posts) == 1, "the server must still hang"
            collector.stop()
            collector.start()
            until(lambda: len(server.posts) == 2, "with a post")
            collector.stop()
        first, second = ({event["id"] for event in each["events"]} for each in server.posts)
        assert first
        assert second
        assert not first & second
        assert all(event["event"] == "new" for event in server.events)
        assert SECRET not in collector.log_file.read_text()


def test_start_fails_with_an_invalid_webhook_url(tmp_path: Path) -> None:
    settings = {"PANDAEVAL_EXPORTERS__WEBHOOK__URL_ENV": "HOOK", "HOOK": f"hooks.example/{SECRET}"}
    with CollectorProcess(tmp_path, settings) as collector:
        collector.launch()
        assert collector.wait(60) == 2
        assert "exporters.webhook.url_env: HOOK does not contain a URL" in collector.log()
        assert SECRET not in collector.log()

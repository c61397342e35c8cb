"""Posts of incidents to a webhook on loopback."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.show import webhook as module
from pandaeval_collector.show.api.incidents import IncidentReads
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.report.incidents import Incident
from pandaeval_collector.show.webhook import IncidentPosts, change
from pandaeval_collector.store import Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.rows import DecidedTrace, ListedRow, ResultRow
from pandaeval_collector.store.triage import State, Triage
from support.receivers import until
from support.webhook_server import HANG, SECRET, WebhookServer, webhook_server
from unit.show.api.test_incidents import failed, group

LOOP, CRASH = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
DAY_MS = 86_400_000


class Alarm:
    """A store with a webhook."""

    def __init__(self, folder: Path, server: WebhookServer) -> None:
        self.store, self.telemetry, self.server = Store(folder, "off"), Telemetry(), server
        self._reads = Reads(Finder(folder))
        self._numbers = itertools.count(1)
        self.hook = self.started()

    def started(self, style: Literal["json", "slack"] = "json", page: str | None = "http://page") -> IncidentPosts:
        """Return a webhook as after a restart."""
        incidents = IncidentReads(self._reads.finder, Names(self._reads.finder, ()))
        reads = self._reads, incidents
        return IncidentPosts(self.server.url, "HOOK", style, reads, self.store, self.telemetry, page)

    def fail(self, group_id: str = LOOP, ago_ms: int = 1000, reason: str = "it loops", agent: str = "desk") -> None:
        """Store a failed run that began ``ago_ms`` before now."""
        id_, at = f"{next(self._numbers):032x}", int(time.time() * 1000) - ago_ms
        trace, changes = bytes.fromhex(id_), WriteSet()
        facts = {"id": id_, "at": at, "in": "q", "out": "a", "agent": agent, "us": 1, "spans": 1, "llm": 1, "tools": 0}
        changes.traces.append(DecidedTrace(trace, 1, True, "d", frozenset(), [], 0))
        changes.listed.append(ListedRow(trace, at, agent, agent, "", "", False, orjson.dumps(facts)))
        body: dict[str, Any] = {"label": "loop", "reason": reason, "trace_id": id_, "outcome": "scored", "score": 0.0}
        body |= {"level": "trace", "metric": "loop", "success": False, "why": None, "session_id": None}
        body |= {"span_ids": [id_[16:]], "evaluator": {"kind": "code"}}
        body["metadata"] = {"failure_group": {"id": group_id, "severity": "high"}}
        result = ResultRow(f"trace.loop {id_}", id_, "trace.loop", 1, orjson.dumps(body))
        result.success, result.signal, result.verdict = False, 0.0, "failed"
        changes.results.append(result)
        changes.failures.append(group(group_id, "high", reason, at / 1000, label="loop"))
        self.store.commit(changes).result()

    def mark(self, state: State, at: int, id_: str = LOOP) -> None:
        self.store.triage.mark([id_], Triage(state, at=at)).result()

    def close(self) -> None:
        self._reads.close()
        self.store.close()


@pytest.fixture
def alarm(tmp_path: Path) -> Iterator[Alarm]:
    with webhook_server() as server:
        made = Alarm(tmp_path, server)
        yield made
        made.close()


async def test_a_new_incident_is_posted_once_even_after_a_restart(alarm: Alarm) -> None:
    alarm.fail(CRASH, reason="it crashes")
    await alarm.hook.look()
    assert alarm.server.posts == [], "the incident is older than the webhook"
    alarm.fail()
    alarm.fail(CRASH, reason="it crashes")
    await alarm.hook.look()
    [event] = alarm.server.events
    assert (event["event"], event["id"], event["severity"], event["runs"]) == ("new", LOOP, "high", 1)
    assert (event["reason"], event["agents"]) == ("it loops", ["desk"])
    assert event["url"] == f"http://page/#/failures?group={LOOP}"
    alarm.fail()
    for hook in (alarm.hook, alarm.started()):
        await hook.look()
    assert len(alarm.server.posts) == 1


async def test_the_first_incident_of_an_empty_store_is_posted(alarm: Alarm) -> None:
    await alarm.hook.look()
    alarm.fail()
    await alarm.started().look()
    assert [event["event"] for event in alarm.server.events] == ["new"]


async def test_each_return_of_a_resolved_incident_is_posted_once(alarm: Alarm) -> None:
    await alarm.hook.look()
    alarm.fail(ago_ms=60_000)
    await alarm.hook.look()
    now = int(time.time() * 1000)
    for resolved_at in (now - 30_000, now - 10_000):
        alarm.mark("resolved", resolved_at)
        alarm.fail(ago_ms=9_000)
        for hook in (alarm.hook, alarm.started()):
            await hook.look()
    assert [event["event"] for event in alarm.server.events] == ["new", "returned", "returned"]


async def test_a_growing_incident_is_posted_once_even_after_a_restart(alarm: Alarm) -> None:
    alarm.fail(ago_ms=20 * 3_600_000)
    await alarm.hook.look()
    for _ in range(6):
        alarm.fail()
    await alarm.hook.look()
    alarm.fail()
    await alarm.started().look()
    assert [(event["event"], event["runs"]) for event in alarm.server.events] == [("growing", 7)]


async def test_a_young_incident_with_a_steady_rate_is_not_posted_as_growing(alarm: Alarm) -> None:
    await alarm.hook.look()
    for minutes in range(1, 400, 20):  # steadily, for longer than a quarter of the window
        alarm.fail(ago_ms=minutes * 60_000)
    alarm.fail(CRASH, ago_ms=20 * 3_600_000, reason="it crashes")
    for hook in (alarm.hook, alarm.started()):
        await hook.look()
        alarm.fail()
    assert [event["event"] for event in alarm.server.events] == ["new", "new"]


async def test_muted_and_resolved_incidents_are_not_posted(alarm: Alarm) -> None:
    await alarm.hook.look()
    alarm.mark("muted", int(time.time() * 1000) - 1000)
    alarm.fail()
    await alarm.hook.look()
    assert alarm.server.posts == []


@pytest.mark.parametrize(
    ("triage", "trend", "notes", "kind"),
    [
        (Triage(), "", {}, "new"),
        (Triage(), "rising", {"i": (0, 0)}, "growing"),
        (Triage("known"), "rising", {"i": (0, 2)}, None),
        (Triage("known"), "rising", {"i": (0, 0)}, "growing"),
        (Triage("new", at=5, back_at=6), "rising", {"i": (0, 0)}, "returned"),
        (Triage("new", at=5, back_at=6), "", {"i": (5, 0)}, None),
        (Triage("new", at=5, back_at=6), "", {}, "returned"),
        (Triage("muted"), "rising", {}, None),
    ],
)
def test_the_event_follows_from_triage_trend_and_earlier_posts(
    triage: Triage, trend: str, notes: Any, kind: str | None
) -> None:
    incident = Incident("i", "m", "l", "high", failed(1, 1), 0)
    assert change(incident, triage, trend, notes, DAY_MS + 1) == kind


async def test_a_failed_post_is_retried_a_few_times_and_then_dropped(
    alarm: Alarm, caplog: pytest.LogCaptureFixture
) -> None:
    await alarm.hook.look()
    alarm.fail()
    alarm.server.statuses = [500] * module._ATTEMPTS
    waits = [await alarm.hook.look() for _ in range(module._ATTEMPTS)]
    assert all(wait is not None for wait in waits[:-1])
    assert waits[-1] is None
    front = Telemetry()
    front.take_in("reader", alarm.telemetry.relay())
    assert front.sinks_down() == ["webhook"]
    assert len(alarm.server.posts) == module._ATTEMPTS
    await alarm.hook.look()
    assert len(alarm.server.posts) == module._ATTEMPTS, "the event is dropped"
    first, last = caplog.records
    assert (first.levelno, last.levelno) == (logging.WARNING, logging.ERROR)
    for record in caplog.records:
        assert "HTTP 500" in record.getMessage()
        assert "check the URL in HOOK" in record.getMessage()
    assert SECRET not in caplog.text
    alarm.fail(CRASH, reason="it crashes")
    await alarm.hook.look()
    assert alarm.server.events[-1]["id"] == CRASH
    front.take_in("reader", alarm.telemetry.relay())
    assert front.sinks_down() == []
    counted = front.counts()
    assert counted["pandaeval.exporter.items", "dropped", "failed"] == 1
    assert counted["pandaeval.exporter.items", "sent", ""] == 1


async def test_an_event_is_sent_after_a_restart_between_two_attempts(alarm: Alarm) -> None:
    await alarm.hook.look()
    alarm.fail()
    alarm.server.statuses = [503]
    assert await alarm.hook.look() is not None
    await alarm.started().look()
    assert [event["event"] for event in alarm.server.events] == ["new", "new"]
    await alarm.started().look()
    assert len(alarm.server.posts) == 2


async def test_a_post_to_a_hanging_server_times_out_and_is_retried(
    alarm: Alarm, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 2.0)
    await alarm.hook.look()
    alarm.fail()
    alarm.server.statuses = [HANG]
    assert await alarm.hook.look() is not None
    assert "no answer within 2 s" in caplog.text
    await alarm.hook.look()
    assert len(alarm.server.posts) == 2


async def test_stopping_during_a_post_does_not_repeat_the_event(alarm: Alarm) -> None:
    await alarm.hook.look()
    alarm.fail()
    alarm.server.statuses = [HANG]
    looking = asyncio.create_task(alarm.hook.look())
    await until(lambda: bool(alarm.server.posts))
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await alarm.started().look()
    assert len(alarm.server.posts) == 1


async def test_the_error_of_an_unreachable_server_hides_the_secret_url(
    alarm: Alarm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    await alarm.hook.look()
    alarm.fail()
    alarm.server.close()
    assert await alarm.hook.look() is not None
    assert "ConnectError" in caplog.text
    assert SECRET not in caplog.text


async def test_many_events_are_split_over_several_posts(alarm: Alarm) -> None:
    await alarm.hook.look()
    for number in range(module._MOST_EVENTS + 3):
        alarm.fail(f"{number:012x}", reason=f"cause {chr(97 + number)}")
    for _ in range(3):
        await alarm.hook.look()
    assert [len(post["events"]) for post in alarm.server.posts] == [module._MOST_EVENTS, 3]
    assert len({event["id"] for event in alarm.server.events}) == module._MOST_EVENTS + 3


async def test_a_slack_message_is_escaped_bounded_and_without_secrets(alarm: Alarm) -> None:
    hook = alarm.started("slack")
    await hook.look()
    alarm.fail(reason=f"<!channel> sk-proj-{'aB3dE5gH' * 6} & {'long ' * 100}", agent="<b>desk</b>")
    await hook.look()
    [post] = alarm.server.posts
    assert post["text"].startswith(f"*New* incident, high: <http://page/#/failures?group={LOOP}|loop> of ")
    assert "&lt;!channel&gt;" in post["text"]
    assert "<b>" not in post["text"]
    assert "aB3dE5gH" not in post["text"]
    assert len(post["text"]) < 500

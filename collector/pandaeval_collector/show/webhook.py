"""Posts new, returned and growing incidents to a webhook."""

from __future__ import annotations

import asyncio
import html
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx
import orjson

from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.base.telemetry import EXPORTER_STATE, Telemetry
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.base.untrusted.foreign_pages import is_loopback
from pandaeval_collector.show.api.incidents import IncidentReads
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.report.incidents import Incident, IncidentRow
from pandaeval_collector.show.view.texts import many, moment, redacted_line, units
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.triage import POSTED, SETTLED, Triage

_log = logging.getLogger(__name__)
logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs the URL of every request

Kind = Literal["new", "returned", "growing"]
Note = tuple[int, int]
"""For an id of an incident: the time of the resolution after which it returned, and the last growth; Unix ms or 0."""
Notes = dict[str, Note]
_WINDOW, _WINDOW_MS = "24h", 86_400_000
_MOST_EVENTS, _MOST_NOTES = 20, 5000
_ATTEMPTS, _FIRST_PAUSE_S, _LONGEST_PAUSE_S = 6, 10.0, 300.0
_TIMEOUT_S = 10.0


class PostError(Exception):
    """The server did not accept a post. The text contains no part of the URL."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of an incident."""

    kind: Kind
    incident: IncidentRow


class IncidentPosts:
    """Finds events and posts each once, also over restarts. For a single event loop.

    A failed post is repeated a few times, so a slow server can get an event twice. An event is noted in the store
    before its post, so the end of the process during a post loses the event.
    """

    def __init__(
        self,
        url: str,
        variable: str,
        style: Literal["json", "slack"],
        reads: tuple[Reads, IncidentReads],
        store: StoreAccess,
        telemetry: Telemetry,
        page: str | None = None,
    ) -> None:
        """``variable``: contains the URL. ``page``: address of the page, for links."""
        self._url, self._variable, self._style, self._page = url, variable, style, page
        (self._reads, self._incidents), self._store = reads, store
        self._telemetry, self._about = telemetry, {"exporter": "webhook", "signal": "incidents"}
        self._backoff, self._failures = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S), 0
        self._seen = -1
        """Number of the newest result when there was no event."""
        telemetry.gauge(EXPORTER_STATE, lambda: int(not self._failures), **self._about)

    async def look(self) -> float | None:
        """Post new events, if any. Returns the seconds to the next attempt after a failure."""
        newest = await self._reads.run(self._store.reads.newest_seq)
        if newest == self._seen:
            return None
        before, notes, events = await self._reads.run(self._changes)
        if notes != before:
            await self._keep(notes)
        if not events:
            self._seen = newest
            return None
        try:
            await self._post(events)
        except PostError as error:
            return await self._failed(before, events, error)
        self._telemetry.add("pandaeval.exporter.items", "sent", len(events), **self._about)
        self._failures = 0
        self._backoff.succeeded()
        return None

    def _changes(self) -> tuple[Notes | None, Notes, list[Event]]:
        """Return the notes before, the notes after, and the events between them."""
        stored = self._store.reads.get(POSTED)
        if stored is None:  # incidents from before the webhook are no news
            found = self._incidents.window(Wanted(), "all")
            return None, {id_: (0, 0) for incident, _ in found.incidents for id_ in incident.ids}, []
        before: Notes = {id_: (returned, grown) for id_, (returned, grown) in orjson.loads(stored).items()}
        found = self._incidents.window(Wanted(), _WINDOW)
        notes, kinds, changed = dict(before), list[Kind](), list[tuple[Incident, Triage]]()
        for incident, triage in found.incidents:
            kind = change(incident, triage, incident.trend(found.begun), before, found.span.until)
            if kind is not None:
                if len(kinds) == _MOST_EVENTS:
                    continue  # for the next round
                kinds.append(kind)
                changed.append((incident, triage))
            _note(notes, incident, triage, kind, found.span.until)
        notes = dict(islice(notes.items(), max(0, len(notes) - _MOST_NOTES), None))
        return before, notes, [*map(Event, kinds, self._incidents.rows(found, changed))]

    async def _keep(self, notes: Notes | None) -> None:
        await asyncio.wrap_future(self._store.triage.keep_posted(orjson.dumps(notes).decode()))

    async def _failed(self, before: Notes | None, events: Sequence[Event], error: PostError) -> float | None:
        self._failures += 1
        cure = f"check the URL in {self._variable}, and that its server accepts posts"
        if self._failures % _ATTEMPTS:
            if self._failures == 1:
                _log.warning("exporters.webhook: %s not posted yet (%s); %s", many(len(events), "event"), error, cure)
            await self._keep(before)
            return self._backoff.failed()
        _log.error(
            "exporters.webhook: %s dropped after %d attempts (%s); %s",
            many(len(events), "event"),
            _ATTEMPTS,
            error,
            cure,
        )
        self._telemetry.add("pandaeval.exporter.items", "dropped", len(events), "failed", **self._about)
        return None

    async def _post(self, events: Sequence[Event]) -> None:
        rows = [event_fields(event, self._page) for event in events]
        body = slack_message(rows) if self._style == "slack" else {"events": rows}
        try:
            trusts_proxy = not is_loopback(urlsplit(self._url).hostname or "")
            async with (
                asyncio.timeout(_TIMEOUT_S),
                httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=trusts_proxy) as client,
                client.stream("POST", self._url, json=body) as response,  # the body of the answer is not read
            ):
                if not response.is_success:
                    raise PostError(f"HTTP {response.status_code}")
        except TimeoutError as error:
            raise PostError(f"no answer within {_TIMEOUT_S:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise PostError(explained(error, (self._url,))) from error


def change(incident: Incident, triage: Triage, trend: str, notes: Notes, now: int) -> Kind | None:
    """Return the event of an incident that is not noted yet, if any. ``now``: Unix milliseconds."""
    if triage.state in SETTLED:
        return None
    known = [notes[id_] for id_ in incident.ids if id_ in notes]
    if triage.back_at is not None and all(returned != triage.at for returned, _ in known):
        return "returned"
    if not known:
        return "new"
    if trend == "rising" and all(now - grown > _WINDOW_MS for _, grown in known):
        return "growing"
    return None


def _note(notes: Notes, incident: Incident, triage: Triage, kind: Kind | None, now: int) -> None:
    for id_ in incident.ids:
        returned, grown = notes.pop(id_, (0, 0))  # the newest are kept
        if kind == "returned":
            returned = triage.at or 0
        if kind in ("returned", "growing"):  # an incident that returned has no earlier runs to grow from
            grown = now
        notes[id_] = returned, grown


def event_fields(event: Event, page: str | None) -> dict[str, Any]:
    """Return an event with its incident, redacted and shortened. ``page``: address of the page."""
    row = event.incident
    return {
        "event": event.kind,
        "id": row.id,
        "severity": row.severity,
        "metric": row.metric,
        "label": redacted_line(row.label, 60),
        "reason": redacted_line(row.reason, 160),
        "agents": [redacted_line(agent, 80) for agent in row.agents],
        "runs": row.runs,
        "first_at": moment(row.first_at),
        "last_at": moment(row.last_at),
        "trace_id": row.trace_id,
        "url": None if page is None else f"{page.rstrip('/')}/#/failures?group={row.id}",
    }


def slack_message(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return events as a message for Slack, a line for each."""
    return {"text": "\n".join(map(_slack_line, rows))}


def _slack_line(row: Mapping[str, Any]) -> str:
    name = _escaped(row["label"].replace("_", " ") or row["metric"])
    link = f"<{row['url']}|{name}>" if row["url"] else name
    agents = _escaped(", ".join(row["agents"]))
    begin = f"*{row['event'].capitalize()}* incident, {row['severity']}: {link}"
    return f"{begin} of {agents or 'an agent without a name'} ({units(row)}): {_escaped(row['reason'])}"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)

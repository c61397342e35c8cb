"""Searches Tempo by TraceQL, and fetches traces as OTLP/JSON (API v2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pandaeval_lab.replay.query_answers import from_envelope
from pandaeval_lab.replay.sources.client import OneTrace, StoreAddress, StoreClient, by_trace, newest_first

_PAGE = 200
_SECOND_NS = 10**9
Found = dict[str, OneTrace]


class Tempo:
    def __init__(self, place: StoreAddress, asking: StoreClient) -> None:
        self._place, self._asking = place, asking
        self._known: set[str] = set()

    def pages(self) -> Iterator[tuple[Found, bool]]:
        """Yield traces by id, newest first, and whether no trace of their time is missing.

        A trace may repeat. Raises :class:`UnusableInputError`.
        """
        if self._place.traces:
            yield from ((self._trace(id_), True) for id_ in self._place.traces)
            return
        # Tempo's search accepts only whole seconds.
        since, until = self._place.since_ns // _SECOND_NS, -(-self._place.until_ns // _SECOND_NS)
        for ids, whole in newest_first(since, until, 1, self._search):
            new = [id_ for id_ in ids if id_ not in self._known]
            self._known.update(new)
            yield from ((self._trace(id_), True) for id_ in new)
            if not whole:
                yield {}, False

    def _search(self, since: int, until: int) -> tuple[list[str], bool]:
        of_service = f"{{ resource.service.name = {json.dumps(self._place.service)} }}" if self._place.service else "{}"
        query = self._place.query or of_service
        asked: dict[str, str | int] = {"q": query, "start": since, "end": until, "limit": _PAGE}

        def hits(answer: dict[str, Any]) -> list[str]:
            newest = sorted(answer.get("traces") or [], key=lambda hit: -int(hit.get("startTimeUnixNano") or 0))
            return [str(hit["traceID"]).lower().zfill(32) for hit in newest]  # Tempo omits leading zeros

        ids = self._asking.get("its answer for one second", "/api/search", asked, hits)
        if ids is None:
            raise self._place.other_api("it has no search (/api/search)")
        return ids, len(ids) < _PAGE

    def _trace(self, id_: str) -> Found:
        def spans(answer: dict[str, Any]) -> Found:
            document = from_envelope(answer)
            return {} if document is None else by_trace(document)

        return self._asking.get(f"trace {id_}", f"/api/v2/traces/{id_}", {}, spans) or {}

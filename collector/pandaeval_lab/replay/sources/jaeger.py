"""Reads traces by Jaeger's v3 API (Jaeger 2 and late versions of 1)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pandaeval_lab.replay.query_answers import from_envelope
from pandaeval_lab.replay.sources.client import (
    OneTrace,
    StoreAddress,
    StoreClient,
    by_trace,
    newest_first,
)

_PAGE = 100
_LEAST_NS = 1_000_000
_OURS = frozenset({"jaeger", "jaeger-all-in-one", "pandaeval-collector"})
"""Services that trace themselves, in Jaeger as it comes and in the collector's output."""
Found = dict[str, OneTrace]


class Jaeger:
    def __init__(self, place: StoreAddress, asking: StoreClient) -> None:
        self._place, self._asking = place, asking

    def pages(self) -> Iterator[tuple[Found, bool]]:
        """Yield traces by id, newest first, and whether no trace of their time is missing.

        A trace may repeat. Raises :class:`UnusableInputError`.
        """
        there = self._services()
        if self._place.traces:
            for id_ in self._place.traces:
                yield self._ask(f"trace {id_}", f"/api/v3/traces/{id_}", {"raw_traces": "true"}), True
            return
        named = {self._place.service} if self._place.service else set(there) - _OURS
        if len(named) != 1 or not named <= set(there):
            shown = ", ".join(sorted(there)[:20])
            known = f"there are {shown}" if shown else "it knows no service at all"
            absent = f"there is no service {self._place.service}" if self._place.service else "name one with service="
            raise self._place.error(f"{absent}; {known}")
        [service] = named
        window = self._place.since_ns, self._place.until_ns
        yield from newest_first(*window, _LEAST_NS, lambda since, until: self._page(service, since, until))

    def _services(self) -> list[str]:
        names = self._asking.get(
            "the list of its services",
            "/api/v3/services",
            {},
            lambda answer: [*map(str, answer.get("services") or ())],
        )
        if names is None:
            raise self._place.other_api("it has no list of services (/api/v3/services); use a newer version of Jaeger")
        return names

    def _page(self, service: str, since_ns: int, until_ns: int) -> tuple[Found, bool]:
        asked: dict[str, str | int] = {
            "query.service_name": service,
            "query.num_traces": _PAGE,
            "query.raw_traces": "true",
            "query.start_time_min": _rfc3339(since_ns),
            "query.start_time_max": _rfc3339(until_ns),
        }
        found = self._ask("a trace", "/api/v3/traces", asked)
        return found, len(found) < _PAGE

    def _ask(self, what: str, path: str, parameters: dict[str, str | int]) -> Found:
        return self._asking.get(what, path, parameters, self._read) or {}

    def _read(self, answer: dict[str, Any]) -> Found:
        document = from_envelope(answer)
        if document is None and answer.get("errors"):
            raise self._place.error(f"{self._place.url} answered: {str(answer['errors'])[:300]}")
        return {} if document is None else by_trace(document)


def _rfc3339(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"

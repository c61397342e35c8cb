"""Reads traces from Jaeger and Tempo by their query APIs."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.sources.client import OneTrace, StoreClient, place_of
from pandaeval_lab.replay.sources.jaeger import Jaeger
from pandaeval_lab.replay.sources.tempo import Tempo

_MOST_IN_VAIN = 100
"""Maximum consecutive answers without a new trace."""


class TraceSource:
    """The traces at an address, with the interface of :class:`pandaeval_lab.replay.files.Input`.

    ``notes``: omissions, after reading.
    """

    def __init__(self, name: str) -> None:
        """Raise :class:`UnusableInputError` for a bad address."""
        self.name = name
        self._place = place_of(name)
        self.size = self.read_bytes = 0
        self.notes: list[str] = []
        self._cut = False
        """Whether the store left out traces of some moments."""

    def close(self) -> None:
        """Has no effect: no connection is open before reading."""

    def requests(self) -> Iterator[Request | BadLine]:
        """Yield a request per trace, newest first. Raises :class:`UnusableInputError`."""
        count, place = 0, self._place
        with StoreClient(place) as client:
            store = Jaeger(place, client) if place.kind == "jaeger" else Tempo(place, client)
            for id_, trace in self._new_traces(store):
                count += 1
                yield (
                    BadLine(f"{self.name}: trace {id_}", trace.problem) if trace.problem else Request(False, trace.data)
                )
        if self._cut:
            self.notes.append(f"{self.name}: some traces are missing, because too many began in the same second")
        if count:
            return
        if place.traces:
            raise place.error(f"it has no trace {', '.join(place.traces[:3])}")
        service = f" of service {place.service}" if place.service else ""
        raise place.error(f"no traces{service} from {place.window}; to look further back, add since=7d to the address")

    def _new_traces(self, store: Jaeger | Tempo) -> Iterator[tuple[str, OneTrace]]:
        place, seen, in_vain = self._place, set[str](), 0
        for page, whole in store.pages():
            self._cut = self._cut or not whole
            new = {id_: trace for id_, trace in page.items() if id_ not in seen}
            in_vain = 0 if new else in_vain + 1
            if in_vain > _MOST_IN_VAIN and not place.traces:
                raise place.error(
                    f"{place.url} ignores the requested time; check the address, or set since= and until="
                )
            for id_, trace in new.items():
                if len(seen) == place.limit and not place.traces:
                    self.notes.append(
                        f"{self.name}: there are more traces than limit={len(seen)}; the newest ones were read"
                    )
                    return
                seen.add(id_)
                yield id_, trace

"""Trace stores of others as inputs: what Jaeger and Tempo hold is fetched over their query APIs."""

from __future__ import annotations

from collections.abc import Iterator

from pandaeval_lab.replay.files import BadLine, Request
from pandaeval_lab.replay.sources.client import StoreClient, place_of
from pandaeval_lab.replay.sources.jaeger import Jaeger
from pandaeval_lab.replay.sources.tempo import Tempo

_MOST_IN_VAIN = 100
"""Most answers one after the other that hold no new trace."""


class TraceSource:
    """The traces at one address, as :class:`pandaeval_lab.replay.files.Input` is those of a file; the store is
    asked when they are read. ``size``, ``read_bytes``: unknown, 0; ``notes``: sentences for people about what was left
    out, once all is read."""

    def __init__(self, name: str) -> None:
        """Raises :class:`UnusableInputError` for an address that cannot be read."""
        self.name = name
        self._place = place_of(name)
        self.size = self.read_bytes = 0
        self.notes: list[str] = []

    def close(self) -> None:
        """Does nothing: this source opens no connection before it is read."""

    def requests(self) -> Iterator[Request | BadLine]:
        """Yields a request for each trace, the newest first. Raises :class:`UnusableInputError`."""
        seen: set[str] = set()
        cut, in_vain = False, 0
        with StoreClient(self._place) as asking:
            store = Jaeger(self._place, asking) if self._place.kind == "jaeger" else Tempo(self._place, asking)
            for found, whole in store.pages():
                cut = cut or not whole
                in_vain = 0 if self._place.traces or not found.keys() <= seen else in_vain + 1
                if in_vain > _MOST_IN_VAIN:
                    raise self._place.told(
                        f"{self._place.url} answers the same whatever time is asked for; see what it is, or name a "
                        "shorter time with since= and until="
                    )
                for id_, one in found.items():
                    if id_ in seen:
                        continue
                    if len(seen) == self._place.limit and not self._place.traces:
                        self.notes.append(
                            f"{self.name}: there are more traces than limit={len(seen)}; the newest ones were read"
                        )
                        break
                    seen.add(id_)
                    place = f"{self.name}: trace {id_}"
                    yield BadLine(place, one.problem) if one.problem else Request(False, one.data)
                if self.notes:
                    break
        if cut:
            self.notes.append(f"{self.name}: of some moments not all traces were answered, there are too many at once")
        if not seen and self._place.traces:
            raise self._place.told(f"it has no trace {', '.join(self._place.traces[:3])}")
        if not seen:
            of = f" of service {self._place.service}" if self._place.service else ""
            looked = f"no traces{of} from {self._place.window}"
            raise self._place.told(f"{looked}; since=7d in the address looks further back")

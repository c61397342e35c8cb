"""Rebuilds traces from stored chunks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pandaeval_collector.store import StoreReader
from pandaeval_collector.store.chunks import Part as Part
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.evidence import Evidence, gather
from pandaeval_otel.normal.trace import Closing, build_trace

_log = logging.getLogger(__name__)

_READ_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Rebuilt:
    evidence: Evidence
    trace: Trace | None


def rebuilt(parts: Iterable[Part], closing: Closing | None = None) -> Rebuilt:
    """Rebuild a trace. Raises ``ValueError``, ``DecodeError`` or :class:`pandaeval_otel.wire.bounds.TooMuchError`."""
    evidence = gather(parts)
    return Rebuilt(evidence, build_trace(evidence, closing))


def closing_of(due: DueTrace) -> Closing:
    return Closing(due.trigger, due.revision, due.late_spans)


def stored(store: StoreReader, ids: Collection[int], closing: Closing) -> Rebuilt:
    """Read a trace. Raises as :func:`rebuilt` and :meth:`StoreReader.chunks`."""
    found = store.chunks(ids)
    return rebuilt([found[id_] for id_ in sorted(found)], closing)


def kept_trace(
    parts: Sequence[Part],
    digest: str,
    closing: Closing = Closing(Trigger.SESSION_CHANGED),  # noqa: B008 - immutable
) -> Trace | None:
    """Rebuild a decided trace; ``None`` if it is unreadable or its digest differs."""
    try:
        found = rebuilt(parts, closing)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as below; it was read once
        _log.warning("a stored trace cannot be read again", exc_info=True)
        return None
    return found.trace if found.evidence.digest == digest else None


def parts_of(store: StoreReader, due: Iterable[DueTrace]) -> Iterator[tuple[DueTrace, Sequence[Part]]]:
    """Yield stored parts of each trace in memory-bounded groups. Raises as :meth:`StoreReader.chunks`."""
    for group in _groups(due):
        found = store.chunks([id_ for each in group for id_ in each.chunks])
        for each in group:
            yield each, [found.pop(id_) for id_ in sorted(set(each.chunks))]


def _groups(due: Iterable[DueTrace]) -> Iterator[list[DueTrace]]:
    group: list[DueTrace] = []
    size = 0
    for each in due:
        if group and size + each.size > _READ_BYTES:
            yield group
            group, size = [], 0
        group.append(each)
        size += each.size
    if group:
        yield group

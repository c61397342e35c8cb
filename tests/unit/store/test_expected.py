"""What is expected of the store while a decision is being committed: what it will say once that is done."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pandaeval_collector.store import (
    Expected,
    ResponseRow,
    ResultRow,
    SessionTraceRow,
    Store,
    TraceRow,
    WriteSet,
    response_digest,
)

_TRACES = [bytes([number]) * 16 for number in range(30)]
_SESSIONS = ["a", "b", "c"]
_RESPONSES = [f"response {number}" for number in range(8)]


@pytest.mark.parametrize("seed", range(16))
def test_it_says_what_the_store_says_afterwards(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    before, after = Store(tmp_path / "before", "off"), Store(tmp_path / "after", "off")
    times: Counter[bytes] = Counter()
    for number in range(chance.randint(0, 4)):
        changes = _changes(chance, number, times)
        for store in (before, after):
            store.commit(changes).result()
    last = _changes(chance, 10, times)
    after.commit(last).result()
    expected = _all(Expected(after))
    found = []
    for store in (before, after):  # it may be there already
        reading = Expected(store)
        with reading.after(last):
            found.append(_all(reading))
        assert _all(reading) == _all(Expected(store))
        store.close()
    assert found == [expected, expected]


def _all(reading: Expected) -> dict[str, Any]:
    """Everything that can be asked; the number of a result aside, which it gets at its commit."""
    units = [*(trace_id.hex() for trace_id in _TRACES), *_SESSIONS]
    return {
        "sessions": {id_: reading.session_traces(id_) for id_ in _SESSIONS},
        "newest": {
            (id_, some): (size, _by_trace(rows))
            for some in (1, 3, 8, 99)
            for id_, (size, rows) in reading.newest_traces(_SESSIONS, some).items()
        },
        "each": [reading.session_trace(trace_id) for trace_id in _TRACES],
        "some": reading.left_behind(_TRACES[::2]),
        "held": [reading.held(trace_id) for trace_id in _TRACES],
        "giving": {id_: _by_trace(reading.giving([id_])) for id_ in _RESPONSES},
        "continuing": {id_: _by_trace(reading.continuing([id_])) for id_ in _RESPONSES},
        "several": _by_trace(reading.giving(_RESPONSES[::2])),
        "results": {key: (row.id, row.revision, row.counted) for key, row in reading.newest_results(units).items()},
    }


def _by_trace(rows: Sequence[SessionTraceRow]) -> list[SessionTraceRow]:
    assert len({row.trace_id for row in rows}) == len(rows)
    return sorted(rows, key=lambda row: row.trace_id)


def _changes(chance: random.Random, number: int, times: Counter[bytes]) -> WriteSet:
    """A decision on some traces, new and old: in sessions, out of them, from one to another. ``times``: how often each
    was decided."""
    changes = WriteSet()
    decided = chance.sample(_TRACES, chance.randint(0, 20))
    for trace_id in decided:
        times[trace_id] += 1
        digest = f"digest {number}"
        changes.traces.append(TraceRow(trace_id, times[trace_id], False, digest, frozenset(), (number,), 1))
        place = chance.choice([*_SESSIONS, "", None])
        if chance.random() < 0.3:
            changes.moved.append(trace_id)
        if place is None:
            continue
        changes.touched |= {place} - {""}
        start, body = chance.randint(0, 9), b'{"decided":%d}' % number
        changes.session_traces.append(SessionTraceRow(trace_id, place, start, start + 1, body, b"answer"))
        given, gone_on_from = _RESPONSES[trace_id[0] % 8], _RESPONSES[trace_id[0] % 5]
        changes.responses.append(ResponseRow(trace_id, response_digest(given), False))
        changes.responses.append(ResponseRow(trace_id, response_digest(gone_on_from), True))
    for unit in [*(trace_id.hex() for trace_id in decided), *changes.touched]:
        key = "session.m" if unit in _SESSIONS else "trace.m"
        changes.results.append(ResultRow(f"{unit} {number}", unit, key, number + 1, b"{}", chance.random() < 0.5))
    return changes

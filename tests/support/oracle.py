"""Tracks sent and acknowledged spans, and compares them with the collector's files."""

from __future__ import annotations

import queue
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from support.made_traces import Composer, MadeTrace
from support.senders import GrpcSender, HttpSender, SpanSender, SubmitSender
from support.stored import stored_spans

SpanKey = tuple[bytes, bytes]


@dataclass(slots=True)
class Told:
    """Sent, acknowledged and rejected spans, by (trace ID, span ID)."""

    sent: dict[SpanKey, bytes] = field(default_factory=dict)
    acknowledged: set[SpanKey] = field(default_factory=set)
    rejected: set[SpanKey] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)


class Oracle:
    """Sends over all receivers from several threads, as a context manager. ``pause``: seconds between traces."""

    def __init__(self, grpc: str, http: str, seed: int, pause: float = 0.01) -> None:
        self.told = Told()
        self._composer = Composer(seed)
        self._pause, self._stopping, self._lock = pause, threading.Event(), threading.Lock()
        doors: Sequence[Callable[[], SpanSender]] = (
            lambda: GrpcSender(grpc),
            lambda: HttpSender(http),
            lambda: HttpSender(http, as_json=True),
            lambda: SubmitSender(grpc),
        )
        self._threads = [
            threading.Thread(target=self._run, args=(door, doors[number - 1], random.Random(seed * 1000 + number)))
            for number, door in enumerate(doors)
        ]
        self._failures: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

    def __enter__(self) -> Oracle:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop requests, give up unanswered ones, and raise sender errors."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if not self._failures.empty():
            raise self._failures.get()

    def _run(
        self, make_door: Callable[[], SpanSender], make_other: Callable[[], SpanSender], chance: random.Random
    ) -> None:
        door, other = make_door(), make_other()
        later: list[tuple[float, MadeTrace, Sequence[Span]]] = []
        try:
            while not self._stopping.wait(self._pause):
                if later and later[0][0] <= time.monotonic():
                    self._deliver(door, *later.pop(0)[1:], chance)
                    continue
                with self._lock:
                    trace = self._composer.trace()
                parts = _parts(trace, chance)
                if len(parts) > 1 and chance.random() < 0.08:  # after the trace has been decided
                    later.append((time.monotonic() + chance.uniform(0.5, 1.5), trace, parts.pop(0)))
                for part in parts:
                    self._deliver(door, trace, part, chance)
                if chance.random() < 0.05:
                    self._deliver(other, trace, trace.spans, chance)
        except BaseException as error:  # raised again by stop()
            self._failures.put(error)
        finally:
            door.close()
            other.close()

    def _deliver(self, door: SpanSender, trace: MadeTrace, spans: Sequence[Span], chance: random.Random) -> None:
        request = trace.request(spans)
        keys = [(span.trace_id, span.span_id) for span in spans]
        deliveries = self.told
        with self._lock:
            deliveries.sent.update(
                zip(keys, (span.SerializeToString(deterministic=True) for span in spans), strict=True)
            )
            if trace.session is not None:
                deliveries.sessions.add(trace.session)
        while not self._stopping.is_set():
            answer = door.send(request)
            with self._lock:
                if answer.refused:
                    deliveries.refused.append(answer.refused)
                    return
                deliveries.answers["acknowledged" if answer.acknowledged else "tried again"] += 1
                if answer.acknowledged:
                    (deliveries.rejected if answer.rejected else deliveries.acknowledged).update(keys)
                    return
            self._stopping.wait(chance.uniform(0.02, 0.15))


def _parts(trace: MadeTrace, chance: random.Random) -> list[Sequence[Span]]:
    """Split a trace into requests as exporters do."""
    spans = list(trace.spans)
    if len(spans) == 1 or chance.random() < 0.5:
        return [spans]
    cuts = sorted(chance.sample(range(1, len(spans)), chance.randint(1, min(2, len(spans) - 1))))
    parts: list[Sequence[Span]] = [spans[start:end] for start, end in zip([0, *cuts], [*cuts, len(spans)], strict=True)]
    if chance.random() < 0.2:
        chance.shuffle(parts)
    return parts


def problems_of(deliveries: Told, database: sqlite3.Connection) -> list[str]:
    found: list[str] = []
    (sound,) = database.execute("PRAGMA integrity_check").fetchone()
    if sound != "ok":
        found.append(f"integrity_check: {sound}")
    stored = stored_spans(database)
    lost = deliveries.acknowledged - stored.keys()
    invented = stored.keys() - deliveries.sent.keys()
    changed = [key for key, copies in stored.items() if key in deliveries.sent and copies - {deliveries.sent[key]}]
    if lost:
        found.append(f"{len(lost)} acknowledged spans are lost, first {_name(min(lost))}")
    if invented:
        found.append(f"{len(invented)} spans were never sent, first {_name(min(invented))}")
    if changed:
        found.append(f"{len(changed)} spans are not what was sent, first {_name(min(changed))}")
    units = {
        row[0].partition(":")[0] for row in database.execute("SELECT DISTINCT unit FROM results")
    }  # turns': trace:span
    strangers = (
        units - {trace_id.hex() for trace_id, _ in list(deliveries.sent)} - deliveries.sessions
    )  # senders still add entries
    if strangers:
        found.append(f"{len(strangers)} results are about nothing that was sent, such as {min(strangers)}")
    found.extend(f"refused for good: {why}" for why in deliveries.refused[:3])
    return found


def _name(key: SpanKey) -> str:
    return f"{key[0].hex()}/{key[1].hex()}"

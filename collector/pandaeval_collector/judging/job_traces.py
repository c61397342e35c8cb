"""Loads the traces that judging jobs are about: rebuilds each from the store and makes its :class:`Pack` for the judge.

The jobs of one trace share the work.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import orjson

from pandaeval_collector.judge.before import tells_of_before
from pandaeval_collector.judge.known import MOST_RECORD
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.redact import Hide, redacted
from pandaeval_collector.judging.earlier import EarlierTraces
from pandaeval_collector.line.reading import rebuilt
from pandaeval_collector.store import Job, Store
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing

_REMEMBER = 32


class GoneError(Exception):
    """The trace of a job cannot be read any more."""


@dataclass(frozen=True, slots=True)
class JobTrace:
    """``trace``: redacted like ``pack``, so that metrics cannot show a judge what the pack hides; ``digest``: of the
    evidence in the newest decision about the trace."""

    trace: Trace
    pack: Pack
    digest: str


class JobTraceLoader:
    """Rebuilds traces on a thread of its own and keeps the last 32 of them."""

    def __init__(self, store: Store, hide: Hide | None) -> None:
        """``hide``: redacts every text of a trace before the pack is made."""
        self._store, self._hide = store, hide
        self._recent: OrderedDict[tuple[bytes, str, int], JobTrace] = OrderedDict()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-pack")
        self._secret, self._earlier = _secret(store), EarlierTraces(store, hide)

    def __call__(self, job: Job, budget: int = MOST_RECORD) -> JobTrace:
        """``budget``: tokens of the pack. Raises :class:`GoneError`. On :attr:`thread`."""
        held = self._store.held(job.trace_id)
        if held is None:
            raise GoneError("it is not kept any more")
        digest = held[0]
        key = job.trace_id, digest, budget
        found = self._recent.get(key)
        if found is None:
            found = self._recent[key] = self._load(job, digest, budget)
            while len(self._recent) > _REMEMBER:
                self._recent.popitem(last=False)
        return found

    def close(self) -> None:
        self.thread.shutdown()

    def _load(self, job: Job, digest: str, budget: int) -> JobTrace:
        about: dict[str, Any] = orjson.loads(job.body)
        closing = Closing(Trigger(about["trigger"]), about["revision"], about["late_spans"])
        trace = rebuilt(self._store.contents(job.trace_id), closing).trace
        if trace is None:
            raise GoneError("its spans are not kept any more")
        session_of = self._store.session_of([job.trace_id]) if trace.session_id is None else {}
        placed = replace(trace, session_id=session_of.get(job.trace_id, trace.session_id))
        shown = placed if self._hide is None else redacted(placed, self._hide)
        earlier = () if tells_of_before(placed) else self._earlier.before(placed)
        return JobTrace(shown, pack(shown, self._secret, budget, earlier), digest)


def _secret(store: Store) -> bytes:
    """The secret that fences of this store are made with; created once."""
    kept = store.get("judge.secret")
    if kept is None:
        kept = secrets.token_hex(32)
        store.put("judge.secret", kept).result()
    return bytes.fromhex(kept)

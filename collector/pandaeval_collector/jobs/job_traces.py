"""Loads traces of judge jobs from the store with their :class:`Pack`, shared by a trace's jobs."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TypeVar

import orjson

from pandaeval_collector.judge.context import before, lines_of
from pandaeval_collector.judge.conversation import Conversation, conversation
from pandaeval_collector.judge.known_models import USUAL_RECORD
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_collector.judge.redact import Hide, redacted
from pandaeval_collector.judge.turns import TurnView, turn_view
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.pipeline.line.stored_traces import rebuilt
from pandaeval_collector.pipeline.line.understanding import DETAIL, SESSION, TURN
from pandaeval_collector.scoring.metrics.trace.response import Ending
from pandaeval_collector.store import Job, ResultRow, SessionTraceRow, StoreAccess, StoreReader
from pandaeval_otel.model import Trace, Trigger
from pandaeval_otel.normal.trace import Closing
from pandaeval_otel.normal.turns import of_turn

_REMEMBER = 32
GROUNDING, RESPONSE = "trace.grounding", "trace.response"
"""Metrics whose suspects are sent to a judge, and whose failures may contradict its verdict."""
Results = Mapping[tuple[str, str], ResultRow]
V = TypeVar("V", TurnView, Conversation)

NEWEST = 24
"""Maximum number of earlier traces read."""
_REMEMBER_SAID = 512


class GoneError(Exception):
    """A job's trace is no longer readable."""


@dataclass(frozen=True, slots=True)
class JobTrace:
    """The redacted subject of a job: trace, turn or conversation. ``turn``: for turn questions."""

    subject: Trace | TurnView | Conversation
    pack: Pack
    against: Mapping[str, str] | None = None
    """A contradiction of a right verdict, see :func:`_against`: metric, trace_id and reason."""
    turn: TurnView | None = None

    def about(self, metric: str) -> Trace | TurnView | Conversation:
        return self.turn if self.turn is not None and metric.startswith("turn.") else self.subject


class JobTraceLoader:
    """Rebuilds traces on a separate thread and caches the last 32."""

    def __init__(self, store: StoreReader, secret: bytes, hide: Hide | None) -> None:
        """``secret``: see :func:`fence_secret`. ``hide``: redacts every text before packing."""
        self._store, self._hide = store, hide
        self._recent = lru_cache(_REMEMBER)(self._load)
        self._trace = lru_cache(1)(self._rebuilt)
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="pandaeval-pack")
        self._shown: Callable[[Trace], Trace] = (lambda trace: trace) if hide is None else partial(redacted, hide=hide)
        self._secret, self._earlier = secret, EarlierTraces(store, self._shown)

    def __call__(self, job: Job, budget: int = USUAL_RECORD) -> JobTrace:
        """Return a job's trace, packed in ``budget`` tokens. Raises :class:`GoneError`. On :attr:`thread`."""
        held = self._store.held(job.trace_id)
        if held is None:
            raise GoneError("it is not kept any more")
        return self._recent(job.trace_id, job.body, held[0], budget)

    @property
    def _key(self) -> bytes:
        return self._secret + f"{datetime.now(UTC):%F}".encode()

    def close(self) -> None:
        self.thread.shutdown()

    def _load(self, trace_id: bytes, body: bytes, digest: str, budget: int) -> JobTrace:
        about = orjson.loads(body)
        if SESSION in about:
            return self._of_session(about[SESSION], digest, budget)
        closing = Closing(Trigger(about["trigger"]), about["revision"], about["late_spans"])
        placed = self._trace(trace_id, closing, digest)
        if TURN in about:
            return self._of_turn(placed, about[TURN], budget)
        shown = self._shown(placed)
        earlier = () if before(placed).said else self._earlier.before(placed)
        found = self._store.newest_results([shown.trace_id])
        packed = replace(pack(shown, self._key, budget, earlier), suspects=self._suspects([shown], found))
        return JobTrace(shown, packed, _against([shown], found), self._turn_in(placed, shown, about.get(DETAIL)))

    def _turn_in(self, trace: Trace, shown: Trace, span_id: str | None) -> TurnView | None:
        if not span_id:
            return None
        index = _index(trace, span_id)
        return replace(self._view(trace, index), record=(shown, index + 1))

    def _rebuilt(self, trace_id: bytes, closing: Closing, digest: str) -> Trace:
        trace = rebuilt(self._store.contents(trace_id), closing).trace
        if trace is None:
            raise GoneError("its spans are not kept any more")
        session_of = self._store.session_of([trace_id])
        return replace(trace, session_id=session_of.get(trace_id, trace.session_id))

    def _of_turn(self, trace: Trace, span_id: str, budget: int) -> JobTrace:
        view = self._view(trace, _index(trace, span_id))
        return JobTrace(view, pack(view.trace, self._key, budget, view.said))

    def _view(self, trace: Trace, index: int) -> TurnView:
        earlier = () if before(of_turn(trace, index)).said else self._earlier.before(trace)
        return self._hidden(turn_view(trace, index, earlier, self._earlier.turns(trace), self._shown))

    def _of_session(self, session_id: str, digest: str, budget: int) -> JobTrace:
        traces, missing = self._earlier.whole(session_id)
        if not traces:
            raise GoneError("the spans of the session are not kept any more")
        whole = self._hidden(conversation(traces, digest, missing))
        results = self._store.newest_results([each.trace_id for each in traces])
        packed = replace(pack(whole.trace, self._key, budget), suspects=self._suspects(traces, results))
        return JobTrace(whole, packed, _against(traces, results))

    def _suspects(self, traces: Sequence[Trace], rows: Results) -> tuple[Mapping[str, str], ...]:
        hide = self._hide or (lambda text: text)
        found: dict[tuple[str, str], Mapping[str, str]] = {}
        for kind in ("not_grounded", "suspect", "for_judge"):
            for trace in traces:
                row = rows.get((trace.trace_id, GROUNDING))
                for each in () if row is None else orjson.loads(row.body)["metadata"].get(kind, ()):
                    shown = {key: hide(each[key]) for key in ("value", "argument", "text") if key in each}
                    place = {"trace_id": trace.trace_id, "span_id": each["span_id"]}
                    found.setdefault((shown["value"], shown["text"]), shown | place)
        return tuple(found.values())

    def _hidden(self, view: V) -> V:
        hide = self._hide
        if hide is None:
            return view
        knowledge = tuple(map(hide, view.knowledge))
        return replace(view, goal=hide(view.goal), profile=hide(view.profile), knowledge=knowledge)


def _index(trace: Trace, span_id: str) -> int:
    for index, turn in enumerate(trace.turns):
        if (turn.span_id or trace.root_span_id) == span_id:
            return index
    raise GoneError("the trace has no such turn any more")


def _against(traces: Sequence[Trace], rows: Results) -> Mapping[str, str] | None:
    for trace in reversed(traces):
        row = rows.get((trace.trace_id, RESPONSE))
        result = orjson.loads(row.body) if row is not None and row.success == 0 else {}
        if result.get("label") == Ending.FALSE_SUCCESS or (result.get("label") == Ending.ERROR and trace is traces[-1]):
            return {"metric": RESPONSE, "trace_id": trace.trace_id, "reason": result["reason"]}
    return None


def fence_secret(store: StoreAccess) -> bytes:
    """Return the secret of this store's fences; creates it once."""
    kept = store.reads.get("judge.secret")
    if kept is None:
        kept = secrets.token_hex(32)
        store.put("judge.secret", kept).result()
    return bytes.fromhex(kept)


class EarlierTraces:
    """Reads a session's earlier traces, and caches the texts of 512 traces. One thread."""

    def __init__(self, store: StoreReader, shown: Callable[[Trace], Trace]) -> None:
        """``shown`` redacts a trace."""
        self._store, self._shown = store, shown
        self._lines = lru_cache(_REMEMBER_SAID)(self._read)

    def before(self, trace: Trace) -> tuple[str, ...]:
        """Return redacted messages, calls and results of the session before ``trace``, oldest first."""
        if trace.session_id is None:
            return ()
        rows = self._before(trace)[-NEWEST:]
        kept = [(row.trace_id, held[0]) for row in rows if (held := self._store.held(row.trace_id)) is not None]
        return tuple(line for each in kept for line in self._lines(*each))

    def turns(self, trace: Trace) -> int | None:
        """Return the number of turns before ``trace``; ``None`` without a session."""
        if trace.session_id is None:
            return None
        return sum(from_row(row).facts.turns for row in self._before(trace))

    def _before(self, trace: Trace) -> list[SessionTraceRow]:
        own, rows = bytes.fromhex(trace.trace_id), self._store.session_traces(trace.session_id or "")
        return [row for row in rows if row.end_ns <= trace.start_ns and row.trace_id != own]

    def whole(self, session_id: str) -> tuple[list[Trace], int]:
        """Return a session's first and newest traces, oldest first, redacted, and the number missing."""
        ids = [row.trace_id for row in self._store.session_traces(session_id)]
        shown = ids if len(ids) <= NEWEST else [ids[0], *ids[1 - NEWEST :]]
        found = [self._shown(trace) for trace_id in shown if (trace := self._trace(trace_id)) is not None]
        return found, len(ids) - len(found)

    def _trace(self, trace_id: bytes) -> Trace | None:
        return rebuilt(self._store.contents(trace_id), Closing(Trigger.SESSION_CHANGED)).trace

    def _read(self, trace_id: bytes, digest: str) -> tuple[str, ...]:
        trace = self._trace(trace_id)
        return () if trace is None else lines_of(self._shown(trace))

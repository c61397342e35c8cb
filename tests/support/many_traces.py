"""A store with many scored traces."""

from __future__ import annotations

import random
import time

import orjson

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet

_BATCH = 500
_AGENTS, _SERVICES = 12, 4
_METRICS = ("grounding", "coherence", "response", "tool_loop", "loop_detection", "a", "b", "c")
_WORDS = "parcel depot ticket fare district server disk booking refund rain error delay seat invoice".split()  # noqa: SIM905
_HOUR_MS = 3_600_000


def fill(store: Store, traces: int, seed: int = 1, results: int = len(_METRICS)) -> None:
    """Decide ``traces`` traces over seven days, with ``results`` each."""
    chance, now = random.Random(seed), int(time.time() * 1000)
    for first in range(0, traces, _BATCH):
        rows = [_trace(chance, at, traces, now, results) for at in range(first, min(traces, first + _BATCH))]
        changes = WriteSet()
        for listed, session, scored in rows:
            changes.traces.append(DecidedTrace(listed.trace_id, 1, True, "d", frozenset(), [], 0))
            changes.session_traces.append(SessionTraceRow(listed.trace_id, session, listed.at_ms, listed.at_ms, b"{}"))
            changes.touched |= {session} - {""}
            changes.listed.append(listed)
            changes.results += scored
        store.commit(changes).result()
        store.commit(WriteSet(closed=set(changes.touched))).result()  # leaves no work for a starting collector


def _trace(
    chance: random.Random, at: int, traces: int, now: int, results: int
) -> tuple[ListedRow, str, list[ResultRow]]:
    id_, session = chance.randbytes(16), "" if at % 4 == 0 else f"session {at // 10}"
    agent, service = f"agent {at // 10 % _AGENTS}", f"service {at // 10 % _SERVICES}"
    asked, answer = (" ".join(chance.choices(_WORDS, k=24)) for _ in range(2))
    started = now - int(168 * _HOUR_MS * (1 - at / traces))
    facts = {
        "id": id_.hex(),
        "agent": agent,
        "service": service,
        "at": started,
        "us": 2_000_000,
        "in": asked,
        "out": answer,
    }
    facts |= {"spans": 12, "llm": 3, "tools": 4, "tokens": [1200, 240]} | ({"session": session} if session else {})
    broken = chance.random() < 0.01
    listed = ListedRow(
        id_, started, agent, service, "prod", "", broken, orjson.dumps(facts | ({"error": "x"} if broken else {}))
    )
    return listed, session, [_result(chance, id_.hex(), session, name, answer) for name in _METRICS[:results]]


def _result(chance: random.Random, trace: str, session: str, metric: str, answer: str) -> ResultRow:
    score = 0.2 if chance.random() < 0.03 else chance.uniform(0.5, 1)
    id_ = chance.randbytes(16).hex()
    body = {
        "id": id_, "metric": metric, "level": "trace", "outcome": "scored", "score": score, "raw": None, "scale": None,
        "threshold": 0.5, "success": score >= 0.5, "label": "pass", "why": None, "reason": answer, "trace_id": trace,
        "span_id": trace[:16], "session_id": session or None, "agent": "a", "service": "s", "environment": None,
        "metadata": {"note": answer, "values": list(range(20))}, "span_ids": [trace[:16]], "coverage": 1.0,
        "evaluator": {"kind": "code", "version": "1", "model": None}, "revision": 1, "final": True,
        "trigger": "root_ended", "late_spans": 0, "cost_usd": 0.0, "tokens": 0, "duration_ms": 1.2, "time": "",
    }  # fmt: skip
    return ResultRow(id_, trace, f"trace.{metric}", 1, orjson.dumps(body), success=score >= 0.5, signal=score)

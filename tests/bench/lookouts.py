"""How long the lists of the API and of the page take, with a store that holds many scored traces.

Traces of a few agents and services, in sessions of ten (every fourth belongs to none), with eight results each, go
through the store's own writes. Every list is then asked for as programs and the page do, from the first page, and its
answer is made into JSON, as after a restart but for the first answer, which is not counted. The time of the processor
tells how long it would take on a machine that has nothing else to do.

    python tests/bench/lookouts.py [--traces 100000] [--times 21] [--folder FOLDER]

With a rate of spans a collector on that store takes traffic meanwhile, and rounds with readers and without take turns:
what the lists take beside it, and what the senders wait for their acknowledgements.

    python tests/bench/lookouts.py --rate 2000 [--rounds 3] [--seconds 30] [--readers 2]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
import orjson
from _beside import measure
from _table import table
from starlette.applications import Starlette

from pandaeval_collector.show.api.lookouts import Lookouts
from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.wanted import Wanted

_BATCH = 500
_AGENTS, _SERVICES = 12, 4
_METRICS = ("coherence", "grounding", "response", "tool_loop", "loop_detection", "a", "b", "c")
_WORDS = "parcel depot ticket fare district server disk booking refund rain error delay seat invoice".split()  # noqa: SIM905
_HOUR_MS = 3_600_000


def fill(store: Store, traces: int, seed: int = 1) -> None:
    """Decides ``traces`` traces, spread over the last seven days."""
    chance, now = random.Random(seed), int(time.time() * 1000)
    for first in range(0, traces, _BATCH):
        rows = [_trace(chance, at, traces, now) for at in range(first, min(traces, first + _BATCH))]
        changes = WriteSet()
        for listed, session, results in rows:
            changes.traces.append(DecidedTrace(listed.trace_id, 1, True, "d", frozenset(), [], 0))
            changes.session_traces.append(SessionTraceRow(listed.trace_id, session, listed.at_ms, listed.at_ms, b"{}"))
            changes.touched |= {session} - {""}
            changes.listed.append(listed)
            changes.results += results
        store.commit(changes).result()
        store.commit(WriteSet(closed=set(changes.touched))).result()  # a collector that starts has nothing to score


def _trace(chance: random.Random, at: int, traces: int, now: int) -> tuple[ListedRow, str, list[ResultRow]]:
    id_, session = chance.randbytes(16), "" if at % 4 == 0 else f"session {at // 10}"
    agent, service = f"agent {at // 10 % _AGENTS}", f"service {at // 10 % _SERVICES}"
    asked, said = (" ".join(chance.choices(_WORDS, k=24)) for _ in range(2))
    started = now - int(168 * _HOUR_MS * (1 - at / traces))
    facts = {
        "id": id_.hex(),
        "agent": agent,
        "service": service,
        "at": started,
        "us": 2_000_000,
        "in": asked,
        "out": said,
    }
    facts |= {"spans": 12, "llm": 3, "tools": 4, "tokens": [1200, 240]} | ({"session": session} if session else {})
    broken = chance.random() < 0.01
    listed = ListedRow(
        id_, started, agent, service, "prod", "", broken, orjson.dumps(facts | ({"error": "x"} if broken else {}))
    )
    return listed, session, [_result(chance, id_.hex(), session, name, said) for name in _METRICS]


def _result(chance: random.Random, trace: str, session: str, metric: str, said: str) -> ResultRow:
    score = 0.2 if chance.random() < 0.03 else chance.uniform(0.5, 1)
    id_ = chance.randbytes(16).hex()
    body = {
        "id": id_, "metric": metric, "level": "trace", "outcome": "scored", "score": score, "raw": None, "scale": None,
        "threshold": 0.5, "success": score >= 0.5, "label": "pass", "why": None, "reason": said, "trace_id": trace,
        "span_id": trace[:16], "session_id": session or None, "agent": "a", "service": "s", "environment": None,
        "metadata": {"note": said, "values": list(range(20))}, "span_ids": [trace[:16]], "coverage": 1.0,
        "evaluator": {"kind": "code", "version": "1", "model": None}, "revision": 1, "final": True,
        "trigger": "root_ended", "late_spans": 0, "cost_usd": 0.0, "tokens": 0, "duration_ms": 1.2, "time": "",
    }  # fmt: skip
    return ResultRow(id_, trace, f"trace.{metric}", 1, orjson.dumps(body), success=score >= 0.5, signal=score)


def questions(trace_id: str) -> Iterator[tuple[str, str]]:
    """What is asked, and its address."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    for name, query in (
        ("worst", ""),
        ("newest", "order=newest"),
        ("one agent", "agent=agent 3"),
        ("last hour", f"since={since}"),
        ("text, frequent", "text=parcel depot"),
        ("text, nowhere", "text=nobody said this"),
        ("failed in a metric", "metric=trace.grounding&success=false"),
    ):
        yield f"traces, {name}", f"/traces?{query}"
        if name != "newest":
            yield f"sessions, {name}", f"/sessions?{query}"
    yield "results, newest", "/results"
    yield "results, of a metric, failed", "/results?metric=trace.grounding&success=false"
    yield "results, of an agent", "/results?agent=agent 3"
    yield "overview", "/overview"
    yield "one trace", f"/traces/{trace_id}"
    yield "one session", "/sessions/session 7"
    for window in ("1h", "24h", "7d", "all"):
        yield f"page, {window}", f"/page/index?window={window}"
    for name, query in (
        ("of one agent", "agent=agent 3"),
        ("failed", "failed=true"),
        ("text", "text=nobody said this"),
        ("failed in a metric", "metric=trace.grounding&success=false"),
        ("traces", "of=traces"),
        ("200 rows", "limit=200"),
    ):
        yield f"page, all, {name}", f"/page/index?window=all&{query}"
    yield "page, one session", "/page/session?id=session 7"
    yield "page, one trace", f"/page/traces/{trace_id}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=21)
    parser.add_argument("--folder", help="where the store is made, or was made before; default: a temporary one")
    parser.add_argument("--rate", type=float, default=0.0, help="spans a second that a collector takes meanwhile")
    parser.add_argument("--rounds", type=int, default=3, help="with a rate: of traffic alone, and as many with readers")
    parser.add_argument("--seconds", type=float, default=30.0, help="of a round")
    parser.add_argument("--readers", type=int, default=2)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(said.folder or temporary) / "data"
        filled = (folder / "pandaeval.db").exists()
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder, "normal")
        if not filled:
            fill(store, said.traces)
        if said.rate:
            trace = Finder(folder).traces(Wanted(), limit=1).rows[0].facts["id"]
            store.close()
            asked = [*questions(trace)]
            found = measure(folder.parent, asked, said.rate, said.rounds, said.seconds, said.readers)
            print(found.report(said.rate, said.readers))
            return
        work = Work(store.jobs.counts, lambda: 0.0, page=PageWork({}, 10.0))
        lookouts = Lookouts(folder, work, None)
        try:
            asyncio.run(_measured(lookouts, said.times))
        finally:
            lookouts.close()
            store.close()


async def _measured(lookouts: Lookouts, times: int) -> None:
    app = httpx.ASGITransport(Starlette(routes=lookouts.routes))
    async with httpx.AsyncClient(transport=app, base_url="http://localhost/api/v1") as client:
        [trace] = (await client.get("/traces?limit=1")).json()["items"]
        rows = []
        for name, address in questions(trace["trace_id"]):
            taken, worked = [], []
            answer = await client.get(address)
            for _ in range(times):
                begun, used = time.perf_counter(), time.process_time()
                answer = await client.get(address)
                taken.append(1000 * (time.perf_counter() - begun))
                worked.append(1000 * (time.process_time() - used))
                assert answer.status_code == 200, (address, answer.text)
            late = (f"{sorted(each)[min(times - 1, int(0.95 * times))]:.0f}" for each in (taken, worked))
            rows.append((name, f"{median(taken):.0f}", *late, f"{len(answer.content) / 1000:,.0f}"))
    print(table("Lists", ("asked", "median ms", "p95 ms", "p95 of CPU ms", "kB"), rows))


if __name__ == "__main__":
    main()

"""Measures the lists of API and page over a large store.

Reads each list from the first page after a restart, and prints wall and CPU time.

    python tests/lab/bench/lookouts.py [--traces 100000] [--times 21] [--folder FOLDER]

With a rate, a collector receives traffic in alternating rounds with and without readers.

    python tests/lab/bench/lookouts.py --rate 2000 [--rounds 3] [--seconds 30] [--readers 2]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx
from _beside import measure
from _table import table
from starlette.applications import Starlette

from pandaeval_collector.show.api.work import PageWork, Work
from pandaeval_collector.store import Store
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.api import ReadInterfaces
from support.many_traces import fill


def questions(trace_id: str) -> Iterator[tuple[str, str]]:
    """Return the queries with addresses."""
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
        yield f"page, {window}, incidents", f"/incidents?window={window}"
        yield f"page, {window}, alike together", f"/page/index?window={window}&together=true"
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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary) / "data"
        filled = (folder / "pandaeval.db").exists()
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder, "normal")
        if not filled:
            fill(store, options.traces)
        if options.rate:
            trace = Finder(folder).traces(Wanted(), limit=1).rows[0].facts["id"]
            store.close()
            asked = [*questions(trace)]
            found = measure(folder.parent, asked, options.rate, options.rounds, options.seconds, options.readers)
            print(found.report(options.rate, options.readers))
            return
        work = Work(store, page=PageWork({}))
        lookouts = ReadInterfaces(folder, work, None)
        try:
            asyncio.run(_measured(lookouts, options.times))
        finally:
            lookouts.close()
            store.close()


async def _measured(lookouts: ReadInterfaces, times: int) -> None:
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

"""Traces of files and trace stores, read into a data directory for the runs that follow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.cli._output import console
from pandaeval_collector.config import Config, masked
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.store import Store
from pandaeval_lab.cli._inputs import requests
from pandaeval_lab.cli._tables import print_problems
from pandaeval_lab.replay.trace_files import TraceFiles

_HOLDS, _FILES = "holds", "files"
"""Key and value by which a store says that these commands alone put traces into it."""
_MOST_NAME = 400
_LIMIT = 2000
_FOR_EVER_S = 1e12


def take_in(store: Store, config: Config, sources: Sequence[str]) -> str:
    """Reads those traces of ``sources`` that ``store`` does not hold yet into it, without scoring them. Returns the
    pair ``key=value`` by which runs find all traces of this reading. Raises ``UserError`` for input that cannot be
    read, and for the store of a collector, whose lists would show these traces."""
    holds = store.reads.get(_HOLDS)
    if holds is None and (store.reads.decided_ids() or next(store.reads.open_chunks(), None)):
        raise UserError(
            f"{store.path} is the data directory of a collector, whose lists would show what is read with --from: name "
            "another one with --store, a new one for instance"
        )
    store.put(_HOLDS, _FILES).result()
    _tidy(store)
    store.discard([chunk.id for chunk in store.reads.open_chunks()]).result()  # of a reading that was broken off
    seen: set[bytes] = set()
    known = store.reads.decided_ids()

    def is_new(trace_id: bytes) -> bool:
        seen.add(trace_id)
        return trace_id not in known

    # Every metric and the judge are switched off: only the runs that follow score.
    nothing = {
        "metrics": config.metrics.model_copy(update={"enabled": ()}),
        "judge": config.judge.model_copy(update={"model": None}),
    }
    unscored = config.model_copy(update=nothing)
    with TraceFiles(close_rules(config), store=store, wants=is_new) as run:
        run.add_all(requests(sources))
        for _ in replay(run, evaluator(unscored)):
            pass
        print_problems(console(stderr=True), run.read.problems, run.read.bad)
    names = one_printable_line(", ".join(masked(each) if "://" in each else each for each in sources))[:_MOST_NAME]
    pair = f"pandaeval.source={names} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    found = store.tag(pair, seen).result()
    _tidy(store)
    if not found:
        raise UserError("no agent traces in this input: `pandaeval inspect` shows what was understood")
    before = len(seen & known)
    typer.echo(
        f"read {len(seen):,} traces, {found:,} of them of agents"
        + (f"; {before:,} were here before" if before else ""),
        err=True,
    )
    return pair


def _tidy(store: Store) -> None:
    """Compresses the spans of agents' traces, and deletes those of all others."""
    now = store.clock.calendar() + 1.0
    while store.kept.keep(0.0, now):
        pass
    while store.forget(0.0, _FOR_EVER_S, now, limit=_LIMIT, judged_s=_FOR_EVER_S).result() >= _LIMIT:
        pass

"""A store with rows in every table, and a way to damage it."""

from __future__ import annotations

from pathlib import Path

from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.store import Store
from pandaeval_otel.model import Trigger
from support.database import open_database
from support.embedder import WordEmbedder
from support.judged import stored
from support.made_traces import Composer, MadeTrace

METRICS = {"trace.loop_detection", "trace.coherence", "session.agent_consistency"}


def make(folder: Path, decided: int = 6, kept: int = 2, undecided: int = 2, seed: int = 1) -> list[MadeTrace]:
    """Create decided traces, some ``kept``, and open traces. Return all."""
    composer = Composer(seed, sessions=2)
    traces = [composer.trace(4) for _ in range(decided + undecided)]
    store = Store(folder, "off")
    line = Line(store.reads, Evaluator(WordEmbedder(), EvaluatorSettings(METRICS)), Emitter({"logs"}))
    for number, trace in enumerate(traces):
        due = stored(store, trace)
        if number < decided:
            store.commit(line.decide([due]).changes).result()
        if number == kept - 1:
            now = store.clock.calendar() + 10
            while store.kept.keep(0.0, now, (), 1 << 30):
                pass
    for session_id in list(store.reads.open_sessions())[:1]:
        store.commit(line.close_sessions(dict.fromkeys([session_id], Trigger.IDLE)).changes).result()
    store.close()
    return traces


def change(folder: Path, statement: str) -> int:
    with open_database(folder / "pandaeval.db") as database:
        return database.execute(statement).rowcount

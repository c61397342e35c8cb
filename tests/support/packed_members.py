"""Session members as collectors exchange them over a topic."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.kafka.members import with_contents
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from support.embedder import WordEmbedder
from support.judged import stored
from support.made_traces import Composer


@cache
def packed() -> Sequence[bytes]:
    composer = Composer(7)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), "off")
        line = Line(store.reads, Evaluator(WordEmbedder()), hands_over=True)
        for trace in (composer.trace() for _ in range(30)):
            store.commit(line.decide([stored(store, trace)]).changes).result()
        found = [with_contents(row.body, store.reads.contents, 1 << 20) for row in store.outbox.after(MEMBERS, 0)]
        store.close()
    return found

"""Members of sessions, as collectors hand them to the owner over gRPC and through a topic, spoilt at random."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pandaeval_collector.exporters.delivery import MEMBERS as SIGNAL
from pandaeval_collector.pipeline.line.handed import with_contents
from pandaeval_collector.pipeline.line.line import Line
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.store import Store
from pandaeval_otel._proto.session_service_pb2 import Member, TakeMembersRequest
from support.embedder import WordEmbedder
from support.hostile.doors import MEMBERS
from support.hostile.fuzz import Shot, spoilt
from support.judged import stored
from support.made_traces import Composer


@cache
def packed() -> Sequence[bytes]:
    """Some, as a collector packs them, each with its spans."""
    composer = Composer(7)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), "off")
        line = Line(store.reads, Evaluator(WordEmbedder()), sessions="elsewhere")
        for trace in (composer.trace() for _ in range(30)):
            store.commit(line.decide([stored(store, trace)]).changes).result()
        found = [with_contents(row.body, store.reads.contents, 1 << 20) for row in store.reads.outbox_after(SIGNAL, 0)]
        store.close()
    return found


def shot(chance: random.Random) -> Shot:
    """A call with up to four of them: spoilt as they lie on the wire, or in what they say of their trace."""
    request = TakeMembersRequest()
    for body in chance.choices(packed(), k=chance.randint(0, 4)):
        member = Member.FromString(body)
        member.trace_id = spoilt(chance.randbytes(16), 0.1, chance)
        member.facts = spoilt(member.facts, 0.3, chance)
        member.answer = spoilt(member.answer, 0.2, chance)
        for content in member.contents:
            content.request = spoilt(content.request, 0.2, chance)
        request.members.append(member)
    return Shot(MEMBERS, "", "", spoilt(request.SerializeToString(), 0.3, chance))

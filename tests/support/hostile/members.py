"""Members of sessions by the ten thousand, as genuine as another collector's, at the owner of those sessions."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_otel._proto.session_service_pb2 import Member
from support.hostile import doors, requests
from support.hostile.attack import Ground, Target, attack
from support.hostile.doors import Channel
from support.line import RunningLine
from support.made_traces import Composer

OWNER = Ground("owner of sessions", {"PANDAEVAL_SESSIONS__OWNER": "true"})
_MADE, _REQUEST, _QUIET_S = 600, 500, 11.0


@attack(OWNER)
def members_of_many_sessions(target: Target, scale: int) -> Iterator[str]:
    """Six thousand, ten to a session; ten times: sixty thousand."""
    yield from _handed_over(target, 6_000 * scale, lambda number: f"flood-{number // 10}")


@attack(OWNER)
def members_of_one_session(target: Target, scale: int) -> Iterator[str]:
    """All of them in the same one."""
    yield from _handed_over(target, 6_000 * scale, lambda number: "flood")


def _handed_over(target: Target, number: int, session_of: Callable[[int], str]) -> Iterator[str]:
    """As a forwarder does: a request after the other, until each is taken."""
    made = [Member.FromString(each) for each in asyncio.run(_genuine())]
    with Channel(target.grpc) as channel:
        for start in range(0, number, _REQUEST):
            body = b"".join(
                requests.field(1, _another(made[at % len(made)], session_of(at), at))
                for at in range(start, min(start + _REQUEST, number))
            )
            while (answer := channel.call(body, doors.MEMBERS)) in {"gRPC RESOURCE_EXHAUSTED", "gRPC UNAVAILABLE"}:
                yield answer
                time.sleep(0.5)
            yield answer


def _another(member: Member, session: str, at: int) -> bytes:
    """The same of another trace in another session, a second later than the one before."""
    later = at * 10**9
    copy = Member()
    copy.CopyFrom(member)
    copy.trace_id, copy.session_id = os.urandom(16), session
    copy.start_ns, copy.end_ns = member.start_ns + later, member.end_ns + later
    return copy.SerializeToString()


async def _genuine() -> list[bytes]:
    """What a collector hands over of traces that it decided."""
    composer, found, seq = Composer(7), [], 0
    with tempfile.TemporaryDirectory() as folder:
        async with RunningLine(Path(folder), embedder=load("embedded"), sessions="elsewhere") as forwarder:
            for _ in range(_MADE):
                await forwarder.send(composer.trace())
            while forwarder.pipeline.open_traces:
                await forwarder.wait(_QUIET_S)
            while rows := forwarder.store.reads.outbox_after(MEMBERS, seq):
                found += [row.body for row in rows]
                seq = rows[-1].seq
    return found

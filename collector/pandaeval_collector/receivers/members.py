"""Messages of decided traces to the collector that owns their session."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from pandaeval_otel._proto.member_pb2 import Member
from pandaeval_otel.wire.labels import MOST_ID


@dataclass(frozen=True, slots=True)
class MemberMessage:
    """A trace of another collector, or a session's end (``ends``).

    ``body``: packed for the worker. ``is_done``: the session has a final score.
    """

    body: bytes
    session_id: str
    ends: bool = False
    is_done: bool = False

    @classmethod
    def read(cls, body: bytes) -> MemberMessage:
        try:
            member = Member.FromString(body)
        except DecodeError as error:
            raise ValueError(f"not a protobuf Member: {error}") from error
        if not member.session_id:
            raise ValueError("it names no session")
        if len(member.session_id) > MOST_ID:
            raise ValueError(f"its session id has more than {MOST_ID} characters")
        if not member.session_end and len(member.trace_id) != 16:
            raise ValueError("its trace id has not 16 bytes")
        return cls(body, member.session_id, member.session_end)

"""Messages about decided traces, for collectors that score their sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import zstandard

from pandaeval_otel._proto.member_pb2 import Content, Member

_log = logging.getLogger(__name__)
_MOST_CONTENTS = 700 << 10
"""Maximum bytes of spans sent to the owner of a session. By default, brokers accept messages of 1 MB."""

Contents = Callable[[bytes], Sequence[tuple[bool, bytes]]]
"""Returns the stored requests of a trace, and whether each request has logs."""


def member_message(contents: Contents) -> Callable[[bytes], tuple[str, bytes]]:
    """Return the function that makes a packed member's key and value."""

    def message(member: bytes) -> tuple[str, bytes]:
        return Member.FromString(member).session_id, with_contents(member, contents, _MOST_CONTENTS)

    return message


def with_contents(message: bytes, read: Contents, most: int) -> bytes:
    """Add stored trace content, if the session's scorer may need it; none if above ``most`` bytes."""
    member = Member.FromString(message)
    if not member.decided:
        return message
    try:
        parts = read(member.trace_id)
    except zstandard.ZstdError as error:
        _log.warning("the spans of trace %s were damaged and stay here (%s)", member.trace_id.hex(), error)
        return message
    if sum(len(request) for _, request in parts) > most:
        return message
    contents = [Content(request=request, logs=logs) for logs, request in parts]
    return message + Member(contents=contents).SerializeToString()

"""Parses topic messages: spans, their log records, and session members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.kafka.protocols import SharingPipeline
from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.store import Consumed
from pandaeval_otel.wire.fields import fields
from pandaeval_otel.wire.fragments import MalformedOtlpError, Split
from pandaeval_otel.wire.splitting import split_logs, split_traces

_BLOCK, _INNER, _TRACE_ID = 0x0A, 0x12, 0x0A
"""Protobuf tags: resource blocks in a request; scopes in blocks, and items in scopes; trace id of a span."""


def holds_logs(request: bytes) -> bool:
    """Return whether a request's first item is a log record, by the type of field 1."""
    try:
        scopes = (scope for block in _each(request, _BLOCK) for scope in _each(block, _INNER))
        item = next((item for scope in scopes for item in _each(scope, _INNER)), None)
        return item is not None and all(tag != _TRACE_ID for tag, *_ in fields(item))
    except ValueError:
        return False


def _each(message: bytes, wanted: int) -> Iterator[bytes]:
    return (message[at:end] for tag, _, at, end, _ in fields(message) if tag == wanted)


SpansOrLogs = tuple[Split, bool]
"""The part of a message that is to be stored: its fragments, and whether they hold log records."""


class SpanTopic:
    """Messages of spans or span log records; units are traces."""

    def __init__(self, pipeline: SharingPipeline, telemetry: Telemetry) -> None:
        self._pipeline, self._telemetry = pipeline, telemetry
        self.let_go, self.is_open = pipeline.let_go, pipeline.is_open

    def take_apart(self, message: bytes, meets: Callable[[bytes], bool]) -> SpansOrLogs:
        """Parse a message.

        ``meets``: called with each trace's key, returns whether to process it. Raises ``ValueError``.
        """
        logs = holds_logs(message)
        try:
            split = split_logs(message) if logs else split_traces(message)
        except MalformedOtlpError as error:
            raise ValueError(str(error)) from error
        fragments, split.fragments = split.fragments, []
        for fragment in fragments:
            if meets(fragment.trace_id):
                split.fragments.append(fragment)
            else:
                for outcome in ("decoded", "duplicate"):
                    self._telemetry.add("pandaeval.logs" if logs else "pandaeval.spans", outcome, len(fragment.items))
        return split, logs

    async def consume(self, taken: Sequence[SpansOrLogs], read: Sequence[Consumed]) -> None:
        """Store messages and offsets in one commit. Raises a :class:`Refusal`."""
        spans, logs = ([split for split, is_logs in taken if is_logs is kind] for kind in (False, True))
        await self._pipeline.consume(spans, read, logs)


class MemberTopic:
    """Messages about sessions; units are sessions, by UTF-8 ID."""

    def __init__(self, pipeline: SharingPipeline) -> None:
        self._pipeline = pipeline

    def take_apart(self, message: bytes, meets: Callable[[bytes], bool]) -> list[MemberMessage]:
        """Read a message's head; marks it if another collector has scored the session because of it."""
        member = MemberMessage.read(message)
        if meets(member.session_id.encode()):
            return [member]
        return [] if member.ends else [replace(member, is_done=True)]

    async def consume(self, taken: Sequence[list[MemberMessage]], read: Sequence[Consumed]) -> None:
        await self._pipeline.adopt([member for some in taken for member in some], read)

    async def let_go(self, keys: Collection[bytes]) -> None:
        await self._pipeline.let_go_sessions({key.decode() for key in keys})

    def is_open(self, key: bytes) -> bool:
        return self._pipeline.session_is_open(key.decode())

"""The messages between the collector and its worker processes, one a frame.

Both ends are the same program on the same machine, and no other process can write to the pipes between them.
"""

from __future__ import annotations

import pickle
import sqlite3
import struct
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pandaeval_collector.pipeline.line import understanding
from pandaeval_collector.pipeline.line.understanding import NotUnderstoodError, Understood
from pandaeval_collector.scoring.evaluator import EvaluatorSettings
from pandaeval_collector.scoring.evaluator.cpu import Spent
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.base.component_errors import RaisedErrors
from pandaeval_otel.model import Trigger

_LENGTH = struct.Struct("<Q")
_PROTOCOL = pickle.HIGHEST_PROTOCOL
_GOOD, _STORE, _BAD = b"=", b"~", b"!"
_HEAD = 1 + _LENGTH.size
EDITION = Path(understanding.__file__).stat().st_mtime_ns
"""Which installation this process runs. A worker of another one, put in place of ours since we started, would answer in
words that we do not know."""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker is told at its start: the store's directory, how to embed, what to score, how much to log."""

    store: Path
    embedding: str
    settings: EvaluatorSettings
    log_level: int = 0

    def pack(self) -> bytes:
        return pickle.dumps((EDITION, self), _PROTOCOL)


class OtherEditionError(RuntimeError):
    """The program on disk is not the one that started this process."""


def unpack_setup(body: bytes) -> WorkerSetup:
    """Unpacks a setup. Raises :class:`OtherEditionError` where another installation packed it."""
    edition, setup = pickle.loads(body)  # noqa: S301 - from our parent
    if edition != EDITION:
        raise OtherEditionError("another version was installed since the collector started; restart the collector")
    return setup  # type: ignore[no-any-return]


def pack_due(due: Sequence[DueTrace]) -> bytes:
    """Packs what has to be known of due traces to understand them."""
    asked = [(d.trace_id, d.trigger.value, d.chunks, d.late_spans, d.size, d.revision) for d in due]
    return pickle.dumps(asked, _PROTOCOL)


def unpack_due(body: bytes) -> list[DueTrace]:
    asked: list[tuple[Any, ...]] = pickle.loads(body)  # noqa: S301 - from our parent
    return [
        DueTrace(trace_id, Trigger(trigger), True, False, chunks, frozenset(), 0, late_spans, size, revision)
        for trace_id, trigger, chunks, late_spans, size, revision in asked
    ]


class Beside(NamedTuple):
    """What a worker tells beside its answer: what components raised, and what CPU time metrics took, since it told
    last."""

    raised: Sequence[RaisedErrors] = ()
    cpu: Spent = ()


def pack_understood(understood: Sequence[Understood], beside: Beside = Beside()) -> list[bytes]:  # noqa: B008
    """Packs what became of traces into the parts of an answer."""
    return [_GOOD, *_packed(beside), pickle.dumps([each.without_spans() for each in understood], _PROTOCOL)]


def pack_error(error: Exception, beside: Beside = Beside()) -> list[bytes]:  # noqa: B008
    """Packs an error into the parts of an answer, where traces could not be understood."""
    kind = _STORE if isinstance(error, sqlite3.OperationalError) else _BAD
    told = (type(error).__name__, str(error), "".join(traceback.format_exception(error)))
    return [kind, *_packed(beside), pickle.dumps(told, _PROTOCOL)]


def told_beside(answer: bytes) -> Beside:
    """Unpacks what the worker tells beside its answer."""
    beside: Beside = pickle.loads(memoryview(answer)[_HEAD : _body(answer)])  # noqa: S301 - from our child
    return beside


def unpack_answer(answer: bytes) -> list[Understood]:
    """Unpacks what became of the traces. Raises what :func:`raise_error` raises."""
    raise_error(answer)
    found: list[Understood] = pickle.loads(memoryview(answer)[_body(answer) :])  # noqa: S301 - from our child
    return found


def raise_error(answer: bytes) -> None:
    """Raises ``sqlite3.OperationalError`` where the store failed just now and :class:`NotUnderstoodError` for all else,
    if the answer says so."""
    if answer[:1] == _GOOD:
        return
    kind, text, trace = pickle.loads(memoryview(answer)[_body(answer) :])  # noqa: S301 - from our child
    if answer[:1] == _STORE:
        raise sqlite3.OperationalError(text)
    raise NotUnderstoodError(kind, f"{kind}: {text}\n{trace}")


def _packed(beside: Beside) -> tuple[bytes, bytes]:
    packed = pickle.dumps(beside, _PROTOCOL)
    return _LENGTH.pack(len(packed)), packed


def _body(answer: bytes) -> int:
    """Returns where in an answer the outcome of the traces begins, behind what is told beside it."""
    (size,) = _LENGTH.unpack_from(answer, 1)
    return _HEAD + int(size)

"""What a trace leaves behind so that later traces of its session can be grounded in it: packed, and capped.

Users' words, answers, arguments and results of calls, documents: what was said and found in this trace. Its
instructions and the history on its spans are left out, since later traces repeat the one and the session has the other.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as _text
from typing import Any

import zstandard

from pandaeval_collector.analysis.rules.grounding._sources import (
    BEFORE,
    CALL,
    RESULT,
    TOLD,
    USER,
    instructed,
    leaves,
    not_captured,
    shows_history,
)
from pandaeval_collector.analysis.rules.grounding._sources import Before as Before
from pandaeval_otel.model import Kind, Trace
from pandaeval_otel.normal.session import is_history

MOST_TRACES = 32
"""Earlier traces of a session that are read at most. If there are as many, there may be more."""
_MOST_CHARS = 24_000
"""Characters of JSON per trace. A longer text is reduced to words that may be values."""
_MOST_UNPACKED = 1 << 20
_json = json.JSONEncoder(default=str).encode
_NAMES = {who: _json(who) for who in (CALL, RESULT, TOLD, USER)}
_PLAIN_WORDS = re.compile(r"(?<!\S)(?:[a-z.,;:!?'()\-]++(?:\s++|\Z))++")
"""Words of prose without values, whole lines at a time."""
_LEVEL = 1
_MORE = "there is more in earlier traces of the session than is looked at"


def pack(trace: Trace) -> bytes:
    """Packs what the trace leaves for the grounding of later ones."""
    kept: dict[str, None] = {}
    left, is_cut = _MOST_CHARS, False
    for who, value in _told(trace):
        spelled = _text(value) if type(value) is str else _json(value)
        if len(spelled) > left:
            value = _PLAIN_WORDS.sub("", "\n".join(leaves(value, [])))
            spelled = _json(value)
        if len(spelled) > left:
            is_cut = True
            continue
        if value and (entry := f"[{_NAMES[who]}, {spelled}]") not in kept:
            kept[entry] = None
            left -= len(spelled)
    hidden = not_captured(trace) or (_MORE if is_cut else None)
    began = shows_history(trace) or (bool(trace.continues) and not is_history(trace.continues))
    head = _json([hidden, began, instructed(trace)])[:-1]
    return _own.compress(f"{head}, [{', '.join(kept)}]]".encode())


def before(packed: Sequence[bytes], responses: frozenset[str]) -> Before:
    """Unpacks what the earlier traces of a session left behind, oldest first; ``b""`` of a trace that left nothing."""
    found: list[tuple[str, Any]] = []
    hidden = _MORE if len(packed) >= MOST_TRACES else None
    told = False
    for index, each in enumerate(packed):
        if not each:
            hidden = hidden or BEFORE
            continue
        why, began_before, *more, kept = json.loads(_own.decompress(each, _MOST_UNPACKED))
        hidden = hidden or why or (BEFORE if began_before and not index else None)
        told = told or any(more)
        found.extend((who, value) for who, value in kept)
    return Before(found, hidden, responses, first=not packed, instructed=told)


def _told(trace: Trace) -> list[tuple[str, Any]]:
    told: list[tuple[str, Any]] = [(USER, trace.input), *((USER, turn.user) for turn in trace.turns)]
    told += [(TOLD, trace.output), *((TOLD, turn.assistant) for turn in trace.turns)]
    for call in trace.tool_calls:
        told.append((CALL, call.arguments))
        if call.has_result:
            told.append((RESULT, call.result))
    for span in trace.spans:
        told.append((RESULT, list(span.documents or ())))
        if span.kind is Kind.RETRIEVAL and span.result is not None:
            told.append((RESULT, span.result.value))
    return [(who, value) for who, value in told if value]


class _Zstd(threading.local):
    """Holds a compressor and a decompressor for each thread: making one takes twenty times as long as using it."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_own = _Zstd()

"""Converts a raw span to normal form: each field comes from the first dialect that states it.

Thread-safe. Candidates are cached by key roots, scope and name prefix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress
from operator import attrgetter, itemgetter
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.base.component_errors import DIALECT, ERRORS
from pandaeval_otel.dialects import Dialect, Reading, dialects
from pandaeval_otel.dialects._common import MAX_ERROR, system_of
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._thoughts import without_thoughts
from pandaeval_otel.dialects._tool_values import is_final_answer, may_be_final_answer
from pandaeval_otel.model import Kind, Span
from pandaeval_otel.model.raw import STATUS_ERROR, RawLog, RawSpan
from pandaeval_otel.normal.signals import is_harmless_error
from pandaeval_otel.normal.speech import normalize_answer_calls, split_hosted_calls

_SAMPLED = 0x01
_TRACE_FLAGS = 0xFF
_REMOTE_KNOWN_AND_TRUE = 0x300
_CACHE_LIMIT = 1_000
_EVENT_ROOTS = 16
"""Number of a span's events searched for key roots."""
_PLAIN = "plain"
_EVALUATION, _LLM, _OTHER, _STEP, _TOOL = Kind.EVALUATION, Kind.LLM, Kind.OTHER, Kind.STEP, Kind.TOOL
_RUNS = frozenset({Kind.AGENT, Kind.WORKFLOW})
_HOOK = re.compile(r"\.a?(?:before|after|wrap)_(?:agent|model|model_call|tool|tool_call)(?:\.\w+)?\Z")
"""Matches hook names of middleware in LangChain agents."""
_NOTHING_SAID = Reading()
_TRACEBACK = "Traceback (most recent call last)"
_NO_MARKS: frozenset[str] = frozenset()

_SHARED = attrgetter(*[name for name in Reading.__dataclass_fields__ if name not in ("kind", "error", "notes")])
"""The fields that a reading and a span share, in the order of the span."""
_FIELDS = tuple(name for name in Reading.__dataclass_fields__ if name not in ("session_ids", "notes"))
_FIELD_VALUES = attrgetter(*_FIELDS)
_MAY_BE_EMPTY = ("input", "output", "system", "tools", "error")
"""Fields in which ``None`` (not stated) differs from "empty"."""
_Read = Callable[[RawSpan, Sequence[RawLog]], Reading | None]
_ReadRest = Callable[[RawSpan, Sequence[RawLog], Reading], Reading | None]
_Reader = tuple[str, _Read, _ReadRest | None]
_Signature = tuple[tuple[str, ...], str, str, bool, bool]
"""The span properties that determine its dialects; spans from the same place in a program share them. Contains all
keys, the scope, the longest known name prefix, whether log records exist, and whether the keys are the span's own and
complete.
"""


def normalize(raw: RawSpan, logs: Sequence[RawLog] = ()) -> Span:
    """Return the normal form of ``raw`` and its log records. Never raises.

    A failed dialect only loses its reading, with a note and a record in :data:`ERRORS`.
    """
    plan = _plan(_signature(raw, logs))
    is_quiet = not (raw.events or logs or raw.status_code == STATUS_ERROR or raw.resource.names_session)
    combined: Reading | None = None
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    for name, read, read_rest in plan.speaking if is_quiet else plan.readers:
        try:
            reading = read(raw, logs) if read_rest is None else read_rest(raw, logs, combined or _NOTHING_SAID)
        except Exception as error:  # noqa: BLE001 - a dialect's error must not lose the span or other readings
            ERRORS.note(DIALECT, name, error)
            notes = (*notes, f"dialect {name} could not read a span")
            continue
        if reading is None:
            continue
        if combined is None:
            combined = reading
        else:
            _complete(combined, reading)
        if name != _PLAIN:
            names += (name,)
    return _span(raw, combined or Reading(), names or (_PLAIN,), notes, plan.has_own)


@dataclass(frozen=True, slots=True)
class _Plan:
    readers: tuple[_Reader, ...]
    speaking: tuple[_Reader, ...]
    has_own: bool


@lru_cache(_CACHE_LIMIT)
def _plan(signature: _Signature) -> _Plan:
    keys = signature[0]
    roots = frozenset(key.partition(".")[0] for key in keys)
    readers: list[_Reader] = []
    speaking: list[_Reader] = []
    for dialect in _candidates(signature, roots):
        readers.append((dialect.name, dialect.read, getattr(dialect, "read_rest", None)))
        is_silent = getattr(dialect, "silent", None)
        if is_silent is None or not is_silent(keys):
            speaking.append(readers[-1])
    return _Plan(tuple(readers), tuple(speaking), semconv.PANDAEVAL_ROOT in roots)


def _signature(raw: RawSpan, logs: Sequence[RawLog]) -> _Signature:
    name = raw.name
    prefixes = _name_prefixes()
    hint = max((p for p in prefixes if name.startswith(p)), key=len) if name.startswith(prefixes) else ""
    keys = (*raw.attributes,)
    if not raw.events and not logs:
        return keys, raw.scope.name, hint, False, not raw.dropped_attributes
    for event in raw.events[:_EVENT_ROOTS]:
        keys += (event.name, *event.attributes)
    for log in logs[:_EVENT_ROOTS]:
        keys += (log_name(log), *log.attributes)
    return keys, raw.scope.name, hint, bool(logs), False


@cache
def _name_prefixes() -> tuple[str, ...]:
    return tuple({prefix for dialect in dialects() for prefix in dialect.names})


def _candidates(signature: _Signature, roots: Set[str]) -> Iterator[Dialect]:
    """Yield candidates: own scope or name matches by priority, then others by number of keys read."""
    shared: list[tuple[int, Dialect]] = []
    for dialect in _possible(roots, ((), *signature[1:4], False)):
        if _is_candidate(dialect, signature, roots):
            yield dialect
            continue
        named = getattr(dialect, "shared_roots", _NO_MARKS)
        if named & roots:
            read = sum(key.partition(".")[0] in named for key in signature[0])
            shared.append((read, dialect))
    yield from (dialect for _, dialect in sorted(shared, key=itemgetter(0), reverse=True))


@lru_cache(_CACHE_LIMIT)
def _possible(roots: Set[str], keyless: _Signature) -> tuple[Dialect, ...]:
    """Return all dialects that can be candidates for keys with these roots."""
    return tuple(
        dialect
        for dialect in dialects()
        if _is_candidate(dialect, keyless, roots) or getattr(dialect, "shared_roots", _NO_MARKS) & roots
    )


def _is_candidate(dialect: Dialect, signature: _Signature, roots: Set[str]) -> bool:
    keys, scope, hint, has_logs, whole = signature
    if getattr(dialect, "only_logs", False) and not has_logs:
        return False
    if not (dialect.roots or dialect.scopes or dialect.names):
        return True
    if scope.startswith(dialect.scopes) or (hint and hint.startswith(dialect.names)):
        return True
    marks = getattr(dialect, "marks", _NO_MARKS)
    if marks and whole and marks.isdisjoint(keys):
        return False
    return not dialect.roots.isdisjoint(roots)


def _complete(combined: Reading, other: Reading) -> None:
    for name in compress(_FIELDS, _FIELD_VALUES(other)):
        if not getattr(combined, name):
            setattr(combined, name, getattr(other, name))
    for name in _MAY_BE_EMPTY:
        if getattr(combined, name) is None:
            setattr(combined, name, getattr(other, name))
    if other.session_ids:
        combined.session_ids = tuple({*combined.session_ids, *other.session_ids})
    if other.notes:
        combined.notes = tuple(dict.fromkeys((*combined.notes, *other.notes)))


def _span(raw: RawSpan, combined: Reading, names: tuple[str, ...], notes: tuple[str, ...], has_own: bool) -> Span:
    own = _own(raw) if has_own else {}
    kind = _settle(raw, combined)
    if combined.error and is_harmless_error(raw, combined, kind):
        combined.error = None
    if combined.output:
        combined.output = normalize_answer_calls(split_hosted_calls(without_thoughts(combined.output)))
    if combined.system is None and kind is _LLM:
        combined.system = system_of(combined.input)
    if len(combined.session_ids) > 1:
        combined.session_ids = tuple(sorted(combined.session_ids))
    if own:
        combined.user_id = str(own.get(semconv.PANDAEVAL_USER_ID) or combined.user_id)
    # Bit 0 counts only if any trace flag is set: many exporters set only the is-remote bits, and send only sampled
    # spans.
    sampled = raw.flags & _SAMPLED != 0 or raw.flags & _TRACE_FLAGS == 0
    # By position, because keywords would take five times as long.
    return Span(  # type: ignore[call-arg]
        raw.trace_id,
        raw.span_id,
        raw.parent_id,
        raw.name,
        kind,
        raw.start_ns,
        raw.end_ns,
        combined.error and _cause(combined.error)[:MAX_ERROR],
        *_SHARED(combined),
        raw.resource.service,
        raw.resource.environment,
        raw.scope.name,
        names,
        tuple([(link.trace_id, link.span_id) for link in raw.links]) if raw.links else (),
        sampled and own.get(semconv.PANDAEVAL_SAMPLED) is not False,
        raw.flags & _REMOTE_KNOWN_AND_TRUE == _REMOTE_KNOWN_AND_TRUE,
        raw.dropped_attributes,
        combined.notes + notes,
        own,
    )


def _cause(error: str) -> str:
    """Return an error without the traceback that follows it, as LangChain's callbacks write it."""
    return error.partition(_TRACEBACK)[0].rstrip() or error


def _settle(raw: RawSpan, combined: Reading) -> Kind:
    kind, tool, agent = combined.kind or _OTHER, combined.tool_name, combined.agent_name
    if kind is _EVALUATION and tool:
        kind = _TOOL  # a span with a tool call is never an evaluation
    is_final = kind is _TOOL and may_be_final_answer(tool)
    if is_final and is_final_answer(tool, combined.arguments and combined.arguments.value):
        kind = _STEP  # the framework ends the run with it and calls no tool
        combined.tool_name = combined.tool_call_id = ""
        combined.arguments = combined.result = None
    if (agent and _HOOK.search(agent)) or (kind in _RUNS and _HOOK.search(raw.name)):
        combined.agent_name = ""  # what a framework hangs around its agent is a step of it
        if kind in _RUNS:
            return _STEP
    return kind


def _own(raw: RawSpan) -> dict[str, Any]:
    prefix = f"{semconv.PANDAEVAL_ROOT}."
    parts = (*[event.attributes for event in raw.events], raw.attributes)
    return {key: value for part in parts for key, value in part.items() if key.startswith(prefix)}

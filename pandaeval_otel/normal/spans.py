"""From a raw span to a normal one: ask the dialects that know such spans, and take each field from the first that says.

Runs on any thread. Candidates are found by a small signature of the span (roots of its keys, its scope, a prefix of its
name), since a process emits few kinds of spans, many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any

from pandaeval_otel import semconv
from pandaeval_otel.dialects import Dialect, Reading
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.discovery import find
from pandaeval_otel.model import Kind, Span
from pandaeval_otel.raw import RawLog, RawSpan

_SAMPLED = 0x01
_TRACE_FLAGS = 0xFF
_REMOTE_KNOWN_AND_TRUE = 0x300
_CACHE_LIMIT = 10_000
_EVENT_ROOTS = 16
"""Events of a span whose keys are looked at for roots: they repeat themselves."""
_PLAIN = "plain"

_FIELDS = tuple(name for name in Reading.__dataclass_fields__ if name not in ("session_ids", "notes"))
_FIELD_VALUES = attrgetter(*_FIELDS)


def normalize(raw: RawSpan, logs: Sequence[RawLog] = ()) -> Span:
    """The normal form of ``raw`` and the log records of the same span id. Never raises: a dialect that fails costs its
    own reading and leaves the note ``dialect NAME failed``."""
    roots = _roots(raw, logs)
    said: Reading | None = None
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    for dialect in _candidates(roots, raw):
        try:
            reading = dialect.read(raw, logs)
        except Exception:  # noqa: BLE001 - one dialect's mistake must not lose the span, nor what the others read
            notes = (*notes, f"dialect {dialect.name} failed")
            continue
        if said is None:
            said = reading
        elif reading is not None:
            _complete(said, reading)
        if reading is not None and dialect.name != _PLAIN:
            names = (*names, dialect.name)
    return _span(raw, said or Reading(), names or (_PLAIN,), notes, semconv.PANDAEVAL_ROOT in roots)


@cache
def dialects() -> tuple[Dialect, ...]:
    """All dialects, highest priority first; raises :class:`ImportError` when one cannot be imported."""
    found: tuple[Dialect, ...] = find("pandaeval_otel.dialects", "DIALECT")
    return tuple(sorted(found, key=lambda dialect: (-dialect.priority, dialect.name)))


# First segments of attribute keys, remembered: the same few keys come with every span.
_ROOT_OF: dict[str, str] = {}
_CANDIDATES: dict[tuple[frozenset[str | None], str, str], tuple[Dialect, ...]] = {}


def _roots(raw: RawSpan, logs: Sequence[RawLog]) -> frozenset[str | None]:
    keys = (*raw.attributes,)
    for event in raw.events[:_EVENT_ROOTS]:
        keys += (event.name, *event.attributes)
    for log in logs[:_EVENT_ROOTS]:
        keys += (log_name(log), *log.attributes)
    return _roots_of(keys)


@lru_cache(maxsize=256)
def _roots_of(keys: tuple[str, ...]) -> frozenset[str | None]:
    roots = frozenset(map(_ROOT_OF.get, keys))
    return roots if None not in roots else frozenset(map(_remembered_root, keys))


def _remembered_root(key: str) -> str | None:
    if len(_ROOT_OF) >= _CACHE_LIMIT:
        _ROOT_OF.clear()
    root = _ROOT_OF[key] = key.partition(".")[0]
    return root


@cache
def _name_prefixes() -> tuple[str, ...]:
    return tuple({prefix for dialect in dialects() for prefix in dialect.names})


def _candidates(roots: frozenset[str | None], raw: RawSpan) -> tuple[Dialect, ...]:
    prefixes = _name_prefixes()
    # A name is of unbounded variety; only whether (and how) it matches a hint belongs into the signature.
    name = max((p for p in prefixes if raw.name.startswith(p)), key=len) if raw.name.startswith(prefixes) else ""
    signature = (roots, raw.scope.name, name)
    found = _CANDIDATES.get(signature)
    if found is None:
        if len(_CANDIDATES) >= _CACHE_LIMIT:
            _CANDIDATES.clear()
        found = _CANDIDATES[signature] = tuple(d for d in dialects() if _is_candidate(d, roots, raw.scope.name, name))
    return found


def _is_candidate(dialect: Dialect, roots: frozenset[str | None], scope: str, name: str) -> bool:
    if not (dialect.roots or dialect.scopes or dialect.names):
        return True
    return (
        not dialect.roots.isdisjoint(roots)
        or (bool(dialect.scopes) and scope.startswith(dialect.scopes))
        or (bool(name) and name.startswith(dialect.names))
    )


def _complete(said: Reading, other: Reading) -> None:
    """Each field from the first reading that says something, else from the first that says "empty"."""
    for name, own, value in zip(_FIELDS, _FIELD_VALUES(said), _FIELD_VALUES(other), strict=True):
        if (value and not own) or own is None:
            setattr(said, name, value)
    if other.session_ids:
        said.session_ids = tuple({*said.session_ids, *other.session_ids})
    if other.notes:
        said.notes = tuple(dict.fromkeys((*said.notes, *other.notes)))


def _span(raw: RawSpan, said: Reading, names: tuple[str, ...], notes: tuple[str, ...], has_own: bool) -> Span:
    resource = raw.resource
    sessions = said.session_ids
    own = _own(raw.attributes) if has_own else {}
    # By position, in the order of the fields: as keywords they would take five times as long.
    return Span(
        raw.trace_id,
        raw.span_id,
        raw.parent_id,
        raw.name,
        said.kind or Kind.OTHER,
        raw.start_ns,
        raw.end_ns,
        said.error,
        said.input,
        said.output,
        said.system,
        said.tool_name,
        said.tool_call_id,
        said.arguments,
        said.result,
        said.tools,
        said.usage,
        said.request_model,
        said.response_model,
        said.response_id,
        said.previous_response_id,
        said.agent_name,
        tuple(sorted(sessions)) if len(sessions) > 1 else sessions,
        str(own.get(semconv.PANDAEVAL_USER_ID) or said.user_id) if own else said.user_id,
        said.documents,
        said.content_refs,
        resource.service,
        resource.environment,
        raw.scope.name,
        names,
        tuple([(link.trace_id, link.span_id) for link in raw.links]) if raw.links else (),
        own.get(semconv.PANDAEVAL_SAMPLED) is not False and _sampled(raw.flags),
        raw.flags & _REMOTE_KNOWN_AND_TRUE == _REMOTE_KNOWN_AND_TRUE,
        raw.dropped_attributes,
        said.notes + notes if notes else said.notes,
        own,
    )


def _sampled(flags: int) -> bool:
    """Bit 0, where any trace flag is set at all: many exporters fill in only the is-remote bits above them, and an
    exporter is handed sampled spans alone."""
    return not flags & _TRACE_FLAGS or bool(flags & _SAMPLED)


def _own(attributes: Mapping[str, Any]) -> dict[str, Any]:
    prefix = f"{semconv.PANDAEVAL_ROOT}."
    return {key: value for key, value in attributes.items() if key.startswith(prefix)}

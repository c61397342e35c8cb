"""Detects the guardrail that stopped a run without an answer.

Evidence is a guardrail's span, event, log record or attribute, or the exception that ended the run. Crashed guardrails,
and guardrails before another model call, do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._values import parsed
from pandaeval_otel.model import Kind, Span
from pandaeval_otel.model.raw import RawLog, RawSpan

_GUARD = re.compile(r"guard[_ -]?rail|guardian|tripwire", re.IGNORECASE)
_STOPPED = re.compile(r"trip(?:ped|wire)|trigger|interven|violat|block|den(?:y|ied)|reject|refus|raised", re.IGNORECASE)
_FILTERED = re.compile(
    r"BlockedPiiEntity|[Cc]ontent[_ -]?[Ff]ilter|content management policy|ContentPolicyViolation|content_policy|"
    r"ResponsibleAIPolicy|violat(?:e|es|ing) (?:our|the) usage polic|"
    r"\b(?:PROHIBITED_CONTENT|RECITATION|BLOCKLIST|SPII|SAFETY)\b|ModelRefusal"
)
_CRASHED = re.compile(r"time[ds]? ?out|failed to|unavailable|connection|execution", re.IGNORECASE)
_CALLED = re.compile(r"guard[_ -]?rails?[^\w]{1,3}(?:name\W{1,3})?(?!triggered|raised|blocked)([\w.-]+)", re.IGNORECASE)
_NAME_KEY = re.compile(r"(?:guard(?:_?rail|ian)(?:[._]?(?:name|id))?|^name)$", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+")
_PREFIX = re.compile(r"^(?:(?:execute|apply|evaluate|run|invoke)[_ ])?guard[_ ]?rails?\b[_ :.-]*", re.IGNORECASE)
_YES = frozenset({"triggered", "blocked", "intervened", "violated", "denied", "rejected", "tripped"})
_NO = frozenset({"passed", "allowed", "valid"})
_SAYS = frozenset({"action", "decision", "verdict", "outcome", "status", "result", "type", "effect", "value", "output"})
_STOPS = re.compile(r"(?:guardrail_)?(?:block(?:ed)?|deny|denied|reject(?:ed)?|refused?|intervened|tripped|triggered)")
_WHY = frozenset({"reason", "message", "explanation", "description", "detail"})
_DEPTH, _LONGEST = 4, 200
_Record = tuple[RawSpan, str, Mapping[str, Any]]
"""A span, the name of its event or log record (``""``: the span), and the attributes."""


def blocked_by(raws: Sequence[RawSpan], logs: Sequence[RawLog], spans: Sequence[Span]) -> tuple[str, str] | None:
    """Return the guardrail that stopped a run and its reason (or ``""``), or ``None``.

    ``spans``: normal forms of ``raws``.
    """
    errors = [span.error for span in spans if span.error is not None and _is_block(span.error)]
    models = [span for span in spans if span.kind is Kind.LLM]
    if any(span.error is not None and not _is_block(span.error) for span in models):
        return None
    last_call = max((span.start_ns for span in models), default=0)
    guards = {span.span_id for span in spans if span.kind is Kind.GUARDRAIL}
    names, reasons, stopped = list[str](), list[str](), bool(errors)
    for raw, event, attributes in _records(raws, logs, last_call):
        is_guard = raw.span_id in guards or _GUARD.search(raw.name) is not None
        leaves = _stopping(event, attributes, is_guard)
        if leaves is not None:
            names += [str(value) for key, value in leaves if _NAME_KEY.search(key) and isinstance(value, str)]
            names += [_PREFIX.sub("", raw.name)] * is_guard
            reasons += [str(value) for key, value in leaves if _WHY.intersection(_words(key)[-1:]) and value]
        stopped = stopped or leaves is not None
    if not stopped:
        return None
    names += [match[1] for match in map(_CALLED.search, errors) if match is not None]
    return next(filter(None, names), "guardrail")[:_LONGEST], next(iter([*reasons, *errors]), "")[:_LONGEST]


def _records(raws: Sequence[RawSpan], logs: Sequence[RawLog], since: int) -> Iterator[_Record]:
    for raw in raws:
        if raw.end_ns >= since:
            yield raw, "", raw.attributes
    for raw in raws:
        for event in raw.events:
            if event.time_ns >= since:
                yield raw, event.name, event.attributes
    by_id = {raw.span_id: raw for raw in raws}
    for log in logs:
        if log.span_id in by_id:
            yield by_id[log.span_id], log_name(log), log.attributes


def _stopping(event: str, attributes: Mapping[str, Any], is_guard: bool) -> list[tuple[str, Any]] | None:
    names_guard = _GUARD.search(event) is not None
    if not (is_guard or names_guard or _concerns((*attributes,))):
        return None
    leaves = [*_leaves(attributes, is_guard or names_guard)]
    stops = any(_stops(key, value) for key, value in leaves) or (names_guard and _is_block(event))
    if stops:
        return leaves
    return None


@lru_cache(1024)
def _concerns(keys: tuple[str, ...]) -> bool:
    return any(_GUARD.search(key) is not None for key in keys)


def _is_block(text: str) -> bool:
    guard = _GUARD.search(text) is not None and _STOPPED.search(text) is not None and _CRASHED.search(text) is None
    return guard or _FILTERED.search(text) is not None


def _words(key: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(key)]


def _leaves(value: Any, of_guard: bool, key: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    if isinstance(value, str) and value[:1] in ("{", "["):
        value = parsed(value)
    if isinstance(value, Mapping) and depth:
        for name, inner in value.items():
            whole = f"{key}.{name}" if key else str(name)
            if of_guard or key or _GUARD.search(whole) is not None:
                yield from _leaves(inner, of_guard, whole, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value[:_LONGEST]:
            yield from _leaves(inner, of_guard, key, depth - 1)
    else:
        yield key, value


def _stops(key: str, value: Any) -> bool:
    words = _words(key)
    last = words[-1] if words else ""
    text = str(value).strip().lower()
    if text in ("true", "false"):
        return last in (_YES if text == "true" else _NO)
    if "tripwire" in words and last in _WHY:
        return bool(text)
    return last in _SAYS and _STOPS.fullmatch(text) is not None

"""Tells whether a guardrail stopped a run on purpose, and which: for runs without an answer.

That is told by a guardrail's span, event or log record, by an attribute about one on any span, by the exception that
ended the run, or by the provider's reason to finish. A guardrail that crashed stopped nothing on purpose, nor did one
after which a model was called again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._values import as_list, parsed
from pandaeval_otel.model import Kind, Span
from pandaeval_otel.model.raw import RawLog, RawSpan

_GUARD = re.compile(r"guard[_ -]?rail|guardian|tripwire", re.IGNORECASE)
_STOPPED = re.compile(r"trip(?:ped|wire)|trigger|interven|violat|block|den(?:y|ied)|reject|refus|raised", re.IGNORECASE)
_FILTERED = re.compile(r"BlockedPiiEntity|content[_ ]filter|content management policy|ContentPolicyViolation")
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
_FINISHED = frozenset({"guardrail_intervened", "content_filter", "content_filtered"})
_DEPTH, _LONGEST = 4, 200


def blocked_by(raws: Sequence[RawSpan], logs: Sequence[RawLog], spans: Sequence[Span]) -> tuple[str, str] | None:
    """Returns the guardrail that stopped a run and the reason that is given (``""``: none), or ``None``. ``spans``: the
    normal forms of ``raws``."""
    errors = [span.error for span in spans if span.error is not None and _is_block(span.error)]
    if any(span.error is not None and span.kind is Kind.LLM and not _is_block(span.error) for span in spans):
        return None
    last_call = max((span.start_ns for span in spans if span.kind is Kind.LLM), default=0)
    guards = {span.span_id for span in spans if span.kind is Kind.GUARDRAIL}
    names, whys, stopped = list[str](), list[str](), bool(errors)
    told = [(raw, "", raw.attributes) for raw in raws if raw.end_ns >= last_call]
    told += [(raw, event.name, event.attributes) for raw in raws for event in raw.events if event.time_ns >= last_call]
    by_id = {raw.span_id: raw for raw in raws} if logs else {}
    told += [(by_id[log.span_id], log_name(log), log.attributes) for log in logs if log.span_id in by_id]
    for raw, event, attributes in told:
        is_guard = raw.span_id in guards or _GUARD.search(raw.name) is not None
        of_guard = is_guard or _GUARD.search(event) is not None
        if not (of_guard or _concerns((*attributes,))):
            continue
        leaves = [*_leaves(attributes, of_guard)]
        if any(_stops(key, value) for key, value in leaves) or (_GUARD.search(event) and _is_block(event)):
            stopped = True
            names += [str(value) for key, value in leaves if _NAME_KEY.search(key) and isinstance(value, str)]
            names += [_PREFIX.sub("", raw.name)] if is_guard else []
            whys += [str(value) for key, value in leaves if _WHY.intersection(_words(key)[-1:]) and value]
        if not _FINISHED.isdisjoint(map(str, as_list(attributes.get(semconv.FINISH_REASONS)))):
            stopped = True
            names.append("content filter of the provider")
    if not stopped:
        return None
    names += [called[1] for error in errors if (called := _CALLED.search(error)) is not None]
    return next(filter(None, names), "guardrail")[:_LONGEST], next(iter([*whys, *errors]), "")[:_LONGEST]


@lru_cache(1024)
def _concerns(keys: tuple[str, ...]) -> bool:
    """Returns whether any of the keys may be about a guardrail; spans of one kind have the same."""
    return semconv.FINISH_REASONS in keys or any(_GUARD.search(key) is not None for key in keys)


def _is_block(text: str) -> bool:
    guard = _GUARD.search(text) is not None and _STOPPED.search(text) is not None and _CRASHED.search(text) is None
    return guard or _FILTERED.search(text) is not None


def _words(key: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(key)]


def _leaves(value: Any, of_guard: bool, key: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Yields the values that are about a guardrail, with their keys: all of one's own span or event."""
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
    """Returns whether a value says that a guardrail stopped what went through it."""
    words = _words(key)
    last = words[-1] if words else ""
    said = str(value).strip().lower()
    if said in ("true", "false"):
        return (last in _YES and said == "true") or (last in _NO and said == "false")
    if "tripwire" in words and last in _WHY:
        return bool(said)
    return last in _SAYS and _STOPS.fullmatch(said) is not None

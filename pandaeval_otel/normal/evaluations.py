"""Collects other evaluators' results, which are shown but never scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._events import log_name
from pandaeval_otel.dialects._values import first, identifier
from pandaeval_otel.model import OtherResult
from pandaeval_otel.model.raw import RawLog, RawSpan

_EVENT = "gen_ai.evaluation.result"
_SOURCES = ("gen_ai.evaluation.evaluator.id", "gen_ai.evaluation.evaluator.name", "gen_ai.evaluation.source")
_MOST, _LONGEST = 50, 300
"""Maximum results of a trace, and maximum characters of an explanation."""


def evaluations(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> tuple[OtherResult, ...]:
    """Return each result once, from its first record, at most :data:`_MOST`."""
    found: dict[tuple[str, float | None, str], OtherResult] = {}
    for source, span_id, attributes in _records(spans, logs):
        name = identifier(attributes.get(semconv.EVALUATION_NAME))
        value = attributes.get(semconv.EVALUATION_SCORE)
        score = float(value) if isinstance(value, (int, float)) else None
        label = identifier(attributes.get(semconv.EVALUATION_LABEL))
        if name and (score is not None or label):
            stated = identifier(first(attributes, _SOURCES)) or source
            why = str(attributes.get("gen_ai.evaluation.explanation") or "")[:_LONGEST]
            found.setdefault((name, score, label), OtherResult(name, stated, score, label, why, span_id))
    return tuple(found.values())[:_MOST]


def _records(spans: Sequence[RawSpan], logs: Sequence[RawLog]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield source, evaluated span and attributes, log records first."""
    for log in logs:
        if log_name(log) == _EVENT:
            yield log.scope.name, log.span_id, log.attributes
    for span in spans:
        if semconv.EVALUATION_NAME in span.attributes:
            yield span.scope.name, span.parent_id, span.attributes
        for event in span.events:
            if event.name == _EVENT:
                yield span.scope.name, span.span_id, event.attributes

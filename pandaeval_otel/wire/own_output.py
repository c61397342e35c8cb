"""Recognises the collector's own output if it is sent back.

A scope name is not proof. Own spans have an id derived from their result ids, and may contain only a result. See
``docs/internals/decisions/0008-own-output-holds-nothing-else.md``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_otel.wire.labels import EVENT as EVENT, is_label

RESULT_ID = "pandaeval.result.id"
_OWN_KEYS = frozenset(
    {
        "gen_ai.response.id",
        "gen_ai.conversation.id",
        "gen_ai.agent.name",
        "error.type",
        "deployment.environment.name",
        "test.case.id",
        "test.suite.run.id",
    }
)
_OWN_ROOTS = ("pandaeval.", "gen_ai.evaluation.")
PLACES = frozenset(
    {"cloud", "container", "deployment", "faas", "host", "k8s", "os", "otel", "process", "service", "telemetry"}
)
"""First segments of location keys that pipelines add to all telemetry. No dialect reads them."""
_NAMES = ("evaluate ", "✓ ", "✗ ")
"""Prefixes of evaluation span names, by verdict."""
_INTERNAL = Span.SpanKind.SPAN_KIND_INTERNAL


def evaluation_span_id(result_ids: Iterable[str]) -> bytes:
    return hashlib.blake2b(".".join(result_ids).encode(), digest_size=8).digest()


def is_own_span(span: Any) -> bool:
    """Return whether a span in our scope is a collector's evaluation span."""
    if span.kind != _INTERNAL or not span.name.startswith(_NAMES) or not span.events:
        return False
    results: list[str] = []
    for event in span.events:
        result = _result_id(event.attributes)
        if event.name != EVENT or not result:
            return False
        results.append(result)
    if span.span_id != evaluation_span_id(results):
        return False
    return _says_nothing_else(span.attributes) and not any(link.attributes for link in span.links)


def is_own_record(record: Any) -> bool:
    """Return whether a log record in our scope is a collector's evaluation event."""
    if record.event_name != EVENT or record.HasField("body") or is_label(record):
        return False
    return bool(_result_id(record.attributes))


def _result_id(attributes: Any) -> str:
    found = next((pair.value.string_value for pair in attributes if pair.key == RESULT_ID), "")
    if found and _says_nothing_else(attributes):
        return found
    return ""


def _says_nothing_else(attributes: Any) -> bool:
    return all(
        pair.key.startswith(_OWN_ROOTS) or pair.key in _OWN_KEYS or pair.key.partition(".")[0] in PLACES
        for pair in attributes
    )

"""No dialect fails if a value of a recorded span has another type."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_otel.model.raw import RawSpan
from pandaeval_otel.normal.spans import normalize
from pandaeval_otel.wire.decode import decode_spans
from tests.golden.conformance_truth import ROOTS
from tests.golden.otlp_json import requests

Place = tuple[str | int, ...]
OTHERS: tuple[object, ...] = ([], {})
"""Neither is hashable: a lookup in a set raises ``TypeError``."""


def _recorded(root: Path) -> Iterator[RawSpan]:
    for path in sorted(root.glob("*/*.otlp.jsonl*")):
        data = path.read_bytes()
        for request in requests((lzma.decompress(data) if path.suffix == ".xz" else data).decode()):
            if isinstance(request, ExportTraceServiceRequest):
                yield from (span for span, _ in decode_spans(request.SerializeToString()))


def _places(value: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    members: Any = ()
    if isinstance(value, dict):
        members = value.items()
    if isinstance(value, list):
        members = enumerate(value[:2])
    for key, member in members:
        yield from _places(member, (*place, key))


def _changed(value: Any, place: Place, new: object) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = _changed(value[place[0]], place[1:], new)
    return copy


def _spans_with_another_type(span: RawSpan, known: set[object]) -> Iterator[tuple[RawSpan, object]]:
    """Yield variants of the span. ``known``: places that were changed before."""
    for key, value in span.attributes.items():
        is_json = isinstance(value, str) and value[:1] in ("[", "{")
        try:
            inner = json.loads(value) if is_json else value
        except ValueError:
            continue
        for place in _places(inner):
            kind = (span.scope.name, key, tuple(part for part in place if isinstance(part, str)))
            if kind in known:
                continue
            known.add(kind)
            for other in OTHERS:
                new = _changed(inner, place, other)
                attributes = {**span.attributes, key: json.dumps(new) if is_json else new}
                yield replace(span, attributes=attributes), (*kind, other)


@pytest.mark.parametrize("root", [pytest.param(root, id=name) for name, root in ROOTS.items()])
def test_no_dialect_fails_if_a_value_has_another_type(root: Path) -> None:
    if not root.is_dir():
        pytest.skip(f"no captures in {root.name} ({root.parent.name})")
    known = set[object]()
    failed = [
        place
        for span in _recorded(root)
        for variant, place in _spans_with_another_type(span, known)
        if any(note.endswith("failed") for note in normalize(variant).notes)
    ]
    assert known
    assert failed == []

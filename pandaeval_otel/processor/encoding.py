"""Encodes SDK spans and log records with the OTLP exporter's encoder. Worker thread only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan

from pandaeval_otel.base import semconv
from pandaeval_otel.processor.settings import Redact
from pandaeval_otel.wire.skeleton import Request


def spans_to_bytes(spans: Sequence[ReadableSpan], redact: Redact | None) -> dict[bytes, list[bytes]]:
    """Return ``ExportTraceServiceRequest`` by trace id. Raises errors of ``redact`` and the encoder.

    Each resource is encoded once for all traces, because that takes as long as a small span.
    """
    unsampled = {span.context.span_id.to_bytes(8, "big") for span in spans if not span.context.trace_flags.sampled}
    requests: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for resourced in encode_spans(spans).resource_spans:
        resource = {
            "resource": resourced.resource.SerializeToString(),
            "schema_url": resourced.schema_url.encode(),
        }
        for scoped in resourced.scope_spans:
            scope = {
                "scope": scoped.scope.SerializeToString(),
                "schema_url": scoped.schema_url.encode(),
            }
            items: defaultdict[bytes, list[bytes]] = defaultdict(list)
            for span in scoped.spans:
                if redact is not None:
                    _redact_span(span, redact)
                if span.span_id in unsampled:
                    span.attributes.add(key=semconv.PANDAEVAL_SAMPLED).value.bool_value = False
                items[span.trace_id].append(span.SerializeToString())
            for trace_id, some in items.items():
                request = Request(resourced=[{**resource, "scoped": [{**scope, "items": some}]}])
                requests[trace_id].append(request.SerializeToString())
    return dict(requests)


def _redact_span(span: Any, redact: Redact) -> None:
    span.name = redact("name", span.name) or ""
    if span.status.message:
        span.status.message = redact("status.message", span.status.message) or ""
    for part in (span, *span.events, *span.links):
        _redact_pairs(part.attributes, redact)


def logs_to_bytes(records: Sequence[Any], redact: Redact | None) -> bytes:
    # Not at the top: most applications have no log events, and the SDK's logs take time to import.
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

    request = encode_logs(records)
    if redact is not None:
        for record in (r for rl in request.resource_logs for scoped in rl.scope_logs for r in scoped.log_records):
            _redact_pairs(record.attributes, redact)
            if _redact_value("body", record.body, redact):
                record.ClearField("body")
    return bytes(request.SerializeToString())


def merged(requests: Sequence[bytes]) -> bytes:
    """Return a single request, each resource and scope written once."""
    if len(requests) == 1:
        return requests[0]
    whole = Request()
    resources: dict[tuple[bytes, bytes], Any] = {}
    scopes: dict[tuple[bytes, bytes, bytes, bytes], Any] = {}
    for resourced in Request.FromString(b"".join(requests)).resourced:
        resource = (resourced.resource, resourced.schema_url)
        if resource not in resources:
            resources[resource] = whole.resourced.add(resource=resource[0], schema_url=resource[1])
        for scoped in resourced.scoped:
            scope = (*resource, scoped.scope, scoped.schema_url)
            if scope not in scopes:
                scopes[scope] = resources[resource].scoped.add(scope=scoped.scope, schema_url=scoped.schema_url)
            scopes[scope].items.extend(scoped.items)
    return bytes(whole.SerializeToString())


def _redact_pairs(pairs: Any, redact: Redact) -> None:
    _remove(pairs, [index for index, pair in enumerate(pairs) if _redact_value(pair.key, pair.value, redact)])


def _redact_value(key: str, value: Any, redact: Redact) -> bool:
    """Redact a value in place. Returns whether to omit it."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        text = redact(key, value.string_value)
        if text is None:
            return True
        value.string_value = text
    elif kind == "array_value":
        values = value.array_value.values
        _remove(values, [index for index, item in enumerate(values) if _redact_value(key, item, redact)])
    elif kind == "kvlist_value":
        _redact_pairs(value.kvlist_value.values, redact)
    return False


def _remove(repeated: Any, indices: Iterable[int]) -> None:
    for index in reversed(list(indices)):
        del repeated[index]

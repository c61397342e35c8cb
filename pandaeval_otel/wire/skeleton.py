"""A lazily parsed protobuf schema, wire-identical to OTLP.

``Request`` declares resources, scopes, spans and log records as raw ``bytes``. ``Fields`` declares a span's attributes
as ``map<string, bytes>``; of a repeated key the last wins. It lists every field of OTLP's span, so equal content
serialises equally.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "pandaeval.skeleton"
_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "bytes": _Field.TYPE_BYTES,
    "string": _Field.TYPE_STRING,
    "fixed64": _Field.TYPE_FIXED64,
    "fixed32": _Field.TYPE_FIXED32,
    "uint32": _Field.TYPE_UINT32,
    "int32": _Field.TYPE_INT32,
}

# message: field = (number, type); "+" before a type repeats it, other names are messages of this file.
# Traces and logs have the same outline under the same field numbers: request > resource > scope > items.
_MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Scoped": {"scope": (1, "bytes"), "items": (2, "+bytes"), "schema_url": (3, "bytes")},
    "Resourced": {"resource": (1, "bytes"), "scoped": (2, "+Scoped"), "schema_url": (3, "bytes")},
    "Request": {"resourced": (1, "+Resourced")},
    "SpansScoped": {"scope": (1, "bytes"), "spans": (2, "+Fields")},
    "SpansResourced": {"resource": (1, "bytes"), "scoped": (2, "+SpansScoped")},
    "Spans": {"resourced": (1, "+SpansResourced")},
    # The fields that assembly needs. Repeated fields are declared as single fields, so protobuf keeps the last value.
    "Head": {
        "span_id": (2, "bytes"),
        "parent_span_id": (4, "bytes"),
        "attributes": (9, "bytes"),
        "events": (11, "bytes"),
        "links": (13, "bytes"),
        "flags": (16, "fixed32"),
    },
    "Status": {"message": (2, "string"), "code": (3, "int32")},
    "Event": {
        "time_unix_nano": (1, "fixed64"),
        "name": (2, "string"),
        "attributes": (3, "map"),
        "dropped_attributes_count": (4, "uint32"),
    },
    "Link": {
        "trace_id": (1, "bytes"),
        "span_id": (2, "bytes"),
        "trace_state": (3, "string"),
        "attributes": (4, "map"),
        "dropped_attributes_count": (5, "uint32"),
        "flags": (6, "fixed32"),
    },
    "Fields": {
        "trace_id": (1, "bytes"),
        "span_id": (2, "bytes"),
        "trace_state": (3, "string"),
        "parent_span_id": (4, "bytes"),
        "name": (5, "string"),
        "kind": (6, "int32"),
        "start_time_unix_nano": (7, "fixed64"),
        "end_time_unix_nano": (8, "fixed64"),
        "attributes": (9, "map"),
        "dropped_attributes_count": (10, "uint32"),
        "events": (11, "+Event"),
        "dropped_events_count": (12, "uint32"),
        "links": (13, "+Link"),
        "dropped_links_count": (14, "uint32"),
        "status": (15, "Status"),
        "flags": (16, "fixed32"),
    },
}


def _build(*wanted: str) -> Iterable[Any]:
    file = descriptor_pb2.FileDescriptorProto(name="pandaeval/skeleton.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            _add_field(message, field_name, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in wanted]


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    repeated = kind.startswith("+") or kind == "map"
    field = message.field.add(
        name=name, number=number, label=_Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    )
    base = kind.lstrip("+")
    if base == "map":
        entry = message.nested_type.add(name="AttributesEntry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, "bytes")
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.AttributesEntry"
    elif base in _TYPES:
        field.type = _TYPES[base]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{base}"


Request, Spans, Fields, Head = _build("Request", "Spans", "Fields", "Head")

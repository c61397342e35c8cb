"""Reads OTLP/JSON documents as OTLP protobuf messages.

Unlike protobuf's JSON mapping, ids are hex, unknown fields are ignored and enums are numbers (OTLP specification, "JSON
Protobuf Encoding"). Also accepts snake_case and enum names.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

import orjson  # the collector's: no application reads OTLP/JSON
from google.protobuf.descriptor import FieldDescriptor
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pandaeval_otel.base._json import MAX_DEPTH, too_deep, without_half_pairs

__all__ = ["MAX_DEPTH", "BadOtlp", "decode_json", "logs_from_json", "traces_from_json"]
_ID_DIGITS = {"trace_id": 32, "span_id": 16, "parent_span_id": 16}
_UNREAD = frozenset({"entity_refs", "key_strindex", "string_value_strindex"})
"""Fields of recent releases that are not read."""
_RECORDS: dict[str, Reader] = {}
# Readers of single JSON values and of objects, of which the rest is composed.
Reader = Callable[[Any], Any]
"""Converts a JSON value to an argument of the protobuf constructor. Raises :class:`BadOtlp`."""


class BadOtlp(ValueError):  # noqa: N818 - named like the receivers' refusals
    """Invalid OTLP/JSON. The text names the path, such as ``resourceSpans[0].scopeSpans[0].spans[3].traceId``."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def under(self, step: str) -> BadOtlp:
        joint = "" if not self.path or self.path.startswith("[") else "."
        return BadOtlp(self.problem, f"{step}{joint}{self.path}")


def text(value: Any) -> str:
    if type(value) is not str:
        raise BadOtlp("not a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadOtlp("not valid Unicode") from None
    return value


def flag(value: Any) -> bool:
    if type(value) is not bool:
        raise BadOtlp("not true or false")
    return value


def number(value: Any) -> float:
    """Read a double, also ``NaN``, ``Infinity`` and ``-Infinity``."""
    if type(value) not in (int, float, str):
        raise BadOtlp("not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise BadOtlp("not a number") from None


def integer(low: int, high: int) -> Reader:
    """Return a reader of integers from ``low`` to ``high``, also from strings."""

    def read(value: Any) -> int:
        try:
            whole = value if type(value) is int else _whole(value)
        except ValueError:
            raise BadOtlp("not a whole number") from None
        if not low <= whole <= high:
            raise BadOtlp(f"not between {low} and {high}")
        return whole

    return read


def _whole(value: Any) -> int:
    if type(value) is str and value.isascii() and value.removeprefix("-").isdigit():
        return int(value)
    if type(value) is float and math.isfinite(value) and value.is_integer():
        return int(value)
    raise ValueError


def hex_id(digits: int, *, required: bool) -> Reader:
    """Return a reader of hex ids with this number of digits. A required id must not be zero; others may be empty."""
    size = digits // 2
    zeros = bytes(size)

    def read(value: Any) -> bytes:
        if value == "" and not required:
            return b""
        try:
            decoded = bytes.fromhex(value)
        except (TypeError, ValueError):
            decoded = b""
        if len(decoded) != size or len(value) != digits:  # fromhex skips blanks
            raise BadOtlp(f"not {digits} hex digits")
        if required and decoded == zeros:
            raise BadOtlp("all zeros")
        return decoded

    return read


def base64_bytes(value: Any) -> bytes:
    """Read bytes in either base64 alphabet, with or without padding."""
    if type(value) is not str:
        raise BadOtlp("not base64")
    standard = value.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        raise BadOtlp("not base64") from None


def enum(by_name: Mapping[str, int]) -> Reader:
    by_number = integer(-(2**31), 2**31 - 1)

    def read(value: Any) -> int:
        if type(value) is str and value in by_name:
            return by_name[value]
        return int(by_number(value))

    return read


def many(reader: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise BadOtlp("not an array")
        result: list[Any] = []
        try:
            for item in value:
                result.append(reader(item))  # noqa: PERF401 - its length is the index of the bad item
        except BadOtlp as error:
            raise error.under(f"[{len(result)}]") from None
        return result

    return read


def record(message: Any) -> Reader:
    """Return a reader of JSON objects as keyword arguments of a message. Unknown keys and ``null`` are ignored."""
    name = message.full_name
    if name in _RECORDS:
        return _RECORDS[name]
    _RECORDS[name] = lambda value: _RECORDS[name](value)  # values are nested, so their reader is recursive
    required = {}
    if message.name == "Span":
        required = {name: message.fields_by_name[name].camelcase_name for name in ("trace_id", "span_id")}
    known = {}
    for field in message.fields:
        if field.name not in _UNREAD:
            known[field.name] = known[field.camelcase_name] = (field.name, _field(field, field.name in required))
    read = _object(known, required)
    _RECORDS[name] = _pair(read) if message.name == "KeyValue" else read
    return _RECORDS[name]


def _field(field: Any, required: bool) -> Reader:
    if field.name in _ID_DIGITS:
        reader = hex_id(_ID_DIGITS[field.name], required=required)
    elif field.enum_type is not None:
        reader = enum({name: value.number for name, value in field.enum_type.values_by_name.items()})
    elif field.message_type is not None:
        reader = record(field.message_type)
    else:
        reader = _SCALARS[field.type]
    if field.default_value == []:
        return many(reader)
    return reader


def _object(known: Mapping[str, tuple[str, Reader]], required: Mapping[str, str]) -> Reader:
    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise BadOtlp("not an object")
        result: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                if item is not None and key in known:
                    name, reader = known[key]
                    result[name] = reader(item)
        except BadOtlp as error:
            raise error.under(key) from None
        for name, key in required.items():
            if name not in result:
                raise BadOtlp("missing", key)
        return result

    return read


def _pair(read: Reader) -> Reader:
    def read_pair(value: Any) -> Any:
        if type(value) is dict and len(value) == 2 and type(held := value.get("value")) is dict and len(held) == 1:
            key, text = value.get("key"), held.get("stringValue")
            if type(key) is str is type(text) and key.isascii() and text.isascii():
                return {"key": key, "value": {"string_value": text}}
        return read(value)

    return read_pair


def decode_json(body: bytes | str) -> Any:
    """Parse the JSON in ``body``. Raises :class:`BadOtlp` for invalid JSON or nesting above ``MAX_DEPTH``."""
    try:
        document = _document(body)
    except RecursionError:
        raise BadOtlp(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise BadOtlp(f"not JSON: {error}") from None
    if too_deep(document):
        raise BadOtlp(f"nested deeper than {MAX_DEPTH} levels")
    return document


def _document(body: bytes | str) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        text = body if isinstance(body, str) else body.decode()
        repaired = without_half_pairs(text)
        if repaired == text:
            raise
    return orjson.loads(repaired)


def traces_from_json(document: Any) -> ExportTraceServiceRequest:
    """Read a trace request (``{"resourceSpans": [...]}``) from :func:`decode_json`. Raises :class:`BadOtlp`."""
    return ExportTraceServiceRequest(**record(ExportTraceServiceRequest.DESCRIPTOR)(document))


def logs_from_json(document: Any) -> ExportLogsServiceRequest:
    """Read a logs request (``{"resourceLogs": [...]}``) likewise."""
    return ExportLogsServiceRequest(**record(ExportLogsServiceRequest.DESCRIPTOR)(document))


_SCALARS: Mapping[int, Reader] = {
    FieldDescriptor.TYPE_STRING: text,
    FieldDescriptor.TYPE_BOOL: flag,
    FieldDescriptor.TYPE_DOUBLE: number,
    FieldDescriptor.TYPE_BYTES: base64_bytes,
    **dict.fromkeys((FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32), integer(0, 2**32 - 1)),
    **dict.fromkeys((FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64), integer(0, 2**64 - 1)),
    FieldDescriptor.TYPE_INT64: integer(-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_INT32: integer(-(2**31), 2**31 - 1),
}

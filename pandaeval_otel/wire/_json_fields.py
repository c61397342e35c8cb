"""Readers of single JSON values and of objects, from which :mod:`pandaeval_otel.wire.otlp_json` is put together."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

Reader = Callable[[Any], Any]
"""JSON value -> what the protobuf constructor takes for the field. Raises :class:`BadOtlp`."""


class BadOtlp(ValueError):  # noqa: N818 - reads as what it is, like the receivers' refusals
    """Not OTLP/JSON. The text names the place, such as ``resourceSpans[0].scopeSpans[0].spans[3].traceId``."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def under(self, step: str) -> BadOtlp:
        """The same problem, seen from one level further out."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return BadOtlp(self.problem, f"{step}{joint}{self.path}")


def text(value: Any) -> str:
    """A string that UTF-8 can hold."""
    if type(value) is not str:
        raise BadOtlp("not a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadOtlp("not valid Unicode") from None
    return value


def flag(value: Any) -> bool:
    """A boolean."""
    if type(value) is not bool:
        raise BadOtlp("not true or false")
    return value


def number(value: Any) -> float:
    """A double; also as a string, which is how protobuf writes ``NaN``, ``Infinity`` and ``-Infinity``."""
    if type(value) not in (int, float, str):
        raise BadOtlp("not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise BadOtlp("not a number") from None


def integer(low: int, high: int) -> Reader:
    """A whole number from ``low`` to ``high``; also as a string, which is how protobuf writes 64-bit numbers."""

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
    """An id of exactly so many hex digits, as bytes. Required: not all zeros. Else it may be empty."""
    size = digits // 2
    zeros = bytes(size)

    def read(value: Any) -> bytes:
        if value == "" and not required:
            return b""
        try:
            decoded = bytes.fromhex(value)
        except (TypeError, ValueError):
            decoded = b""
        if len(decoded) != size or len(value) != digits:  # fromhex passes over blanks
            raise BadOtlp(f"not {digits} hex digits")
        if required and decoded == zeros:
            raise BadOtlp("all zeros")
        return decoded

    return read


def base64_bytes(value: Any) -> bytes:
    """Bytes in either base64 alphabet, with or without padding."""
    if type(value) is not str:
        raise BadOtlp("not base64")
    standard = value.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        raise BadOtlp("not base64") from None


def enum(wrapper: Any) -> Reader:
    """A value of a protobuf enum, by number (also one that this release does not know) or by name."""
    by_name: dict[str, int] = dict(wrapper.items())
    by_number = integer(-(2**31), 2**31 - 1)

    def read(value: Any) -> int:
        if type(value) is str and value in by_name:
            return by_name[value]
        return int(by_number(value))

    return read


def many(reader: Reader) -> Reader:
    """An array."""

    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise BadOtlp("not an array")
        result: list[Any] = []
        try:
            for item in value:
                result.append(reader(item))  # noqa: PERF401 - its length says which item was bad
        except BadOtlp as error:
            raise error.under(f"[{len(result)}]") from None
        return result

    return read


def record(message: type[Message], fields: Mapping[str, Reader], *, required: tuple[str, ...] = ()) -> Reader:
    """A JSON object as keyword arguments of ``message``. Keys in camelCase or snake_case; unknown ones, and ``null``,
    are passed over. ``fields`` that the installed protobuf classes lack count as unknown."""
    known: dict[str, tuple[str, Reader]] = {}
    declared = message.DESCRIPTOR.fields_by_name
    for name, reader in fields.items():
        if name in declared:
            known[name] = known[declared[name].camelcase_name] = (name, reader)

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
        for name in required:
            if name not in result:
                raise BadOtlp("missing", declared[name].camelcase_name)
        return result

    return read

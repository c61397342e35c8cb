"""Readers of single JSON values and of objects, of which :mod:`pandaeval_otel.wire.otlp_json` is composed."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message

Reader = Callable[[Any], Any]
"""Turns a JSON value into the argument of the protobuf constructor. Raises :class:`BadOtlp`."""


class BadOtlp(ValueError):  # noqa: N818 - reads as what it is, like the receivers' refusals
    """The document is not OTLP/JSON. The text names the place, such as
    ``resourceSpans[0].scopeSpans[0].spans[3].traceId``."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def under(self, step: str) -> BadOtlp:
        """Returns the problem with ``step`` put before its path."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return BadOtlp(self.problem, f"{step}{joint}{self.path}")


def text(value: Any) -> str:
    """Reads a string that UTF-8 can hold."""
    if type(value) is not str:
        raise BadOtlp("not a string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadOtlp("not valid Unicode") from None
    return value


def flag(value: Any) -> bool:
    """Reads a boolean."""
    if type(value) is not bool:
        raise BadOtlp("not true or false")
    return value


def number(value: Any) -> float:
    """Reads a double; also from a string, which is how protobuf writes ``NaN``, ``Infinity`` and ``-Infinity``."""
    if type(value) not in (int, float, str):
        raise BadOtlp("not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise BadOtlp("not a number") from None


def integer(low: int, high: int) -> Reader:
    """Returns a reader of whole numbers from ``low`` to ``high``; also from strings, as protobuf writes 64-bit ones."""

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
    """Returns a reader of ids of exactly so many hex digits, as bytes. A required one is not all zeros; others may be
    empty."""
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
    """Reads bytes in either base64 alphabet, with or without padding."""
    if type(value) is not str:
        raise BadOtlp("not base64")
    standard = value.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except ValueError:
        raise BadOtlp("not base64") from None


def enum(wrapper: Any) -> Reader:
    """Returns a reader of a protobuf enum, by number (also an unknown one) or by name."""
    by_name: dict[str, int] = dict(wrapper.items())
    by_number = integer(-(2**31), 2**31 - 1)

    def read(value: Any) -> int:
        if type(value) is str and value in by_name:
            return by_name[value]
        return int(by_number(value))

    return read


def many(reader: Reader) -> Reader:
    """Returns a reader of arrays."""

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
    """Returns a reader of JSON objects as keyword arguments of ``message``. Keys are in camelCase or snake_case;
    unknown ones and ``null`` are ignored, and so are ``fields`` that the installed protobuf classes lack."""
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

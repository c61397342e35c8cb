"""Building blocks of config sections, also for third-party exporters."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

# Durations and sizes as people write them: text to seconds or bytes, and back without loss.
_NUMBER = r"\d+(?:\.\d+)?"
DURATION_PATTERN = "^(?!$)" + "".join(rf"(?:({_NUMBER}) ?{unit} ?)?" for unit in ("d", "h", "m", "s", "ms")) + "$"
SIZE_PATTERN = rf"^({_NUMBER}) ?(B|[kK]B|MB|GB|TB|KiB|MiB|GiB|TiB)$"

_SECONDS = tuple(Decimal(seconds) for seconds in ("86400", "3600", "60", "1", "0.001"))
_LONGEST = Decimal(100 * 365 * 86400)
# The smallest amount for each unit, so that 180 s, 24 h and 7 d have their usual form.
_DURATION_UNITS = (("d", 86400.0, 2), ("h", 3600.0, 1), ("m", 60.0, 5), ("s", 1.0, 1), ("ms", 0.001, 1))
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12} | {
    f"{letter}ib": 1 << 10 * power for power, letter in enumerate("kmgt", start=1)
}
_SIZE_UNITS = ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB")


def parse_duration(value: object) -> float:
    """Return seconds from ``10s``, ``250ms``, ``1h30m`` or ``7d``, up to 100 years. Raises ``ValueError``."""
    match = _match(DURATION_PATTERN, value)
    seconds = Decimal(0)
    if match is not None:
        seconds = sum(
            (Decimal(amount or 0) * unit for amount, unit in zip(match.groups(), _SECONDS, strict=True)), seconds
        )
    if match is None or seconds > _LONGEST:
        raise ValueError("is not a duration; write 10s, 15m or 24h")
    return float(seconds)


def parse_moment(text: str) -> datetime:
    """Return a time from RFC 3339 (UTC if it names no zone) or an age such as ``7d``. Raises ``ValueError``."""
    try:
        return datetime.now(UTC) - timedelta(seconds=parse_duration(text))
    except ValueError:
        pass  # a time, then
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def format_duration(seconds: float) -> str:
    """Return the shortest usual spelling, which ``parse_duration`` reads exactly."""
    for unit, length, least in _DURATION_UNITS:
        amount = round(seconds / length)
        if amount >= least and parse_duration(text := f"{amount}{unit}") == seconds:
            return text
    return f"{Decimal(repr(float(seconds))):f}s".replace(".0s", "s")


def parse_size(value: object) -> int:
    """Return bytes from ``32MiB``, ``1MB`` or ``0.5GiB``. Raises ``ValueError``."""
    match = _match(SIZE_PATTERN, value)
    if match is None or (size := Decimal(match[1]) * _BYTES[match[2].lower()]) >= 1 << 63:
        raise ValueError("is not a size; write 32MiB or 1MB")
    if size != int(size):
        raise ValueError("is not a whole number of bytes")
    return int(size)


def format_size(size: int) -> str:
    """Format a size with the largest exact unit, which ``parse_size`` reads exactly."""
    for unit in _SIZE_UNITS:
        amount, rest = divmod(size, _BYTES[unit.lower()])
        if amount and not rest:
            return f"{amount}{unit}"
    return f"{size}B"


def _match(pattern: str, value: object) -> re.Match[str] | None:
    # The longest quantity is the smallest positive float, with 327 characters.
    return re.match(pattern, value.strip(), re.ASCII) if isinstance(value, str) and len(value) < 400 else None


_ENDPOINT = re.compile(
    r"(?:https?://(?:[^/\s]*@)?)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+)(?::\d{1,5})?(?P<path>/\S*)?"
)


def join_lines(schema: dict[str, Any]) -> None:
    """Write each description of a JSON schema, which comes from a docstring, on one line."""
    for about in schema["properties"].values():
        if "description" in about:
            about["description"] = " ".join(about["description"].split())


class Section(BaseModel):
    """A group of keys, each described by the docstring below it.

    Unknown keys are errors; values are immutable. Name each subclass after its key, because the JSON schema contains
    class names.

    >>> class Sink(Section):
    ...     timeout: Duration = 10.0
    >>> Sink(timeout="1m30s").timeout
    90.0
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, json_schema_extra=join_lines)


def group(section: type[Section], description: str | None = None) -> Any:
    """Make a field that holds ``section`` with its defaults, described by ``description`` or its docstring."""
    return Field(default=section(), description=description or section.__doc__)


def _endpoint(text: str) -> str:
    match = _ENDPOINT.fullmatch(text)
    if not match or (match["path"] and "://" not in text):
        raise ValueError("is not an endpoint; write HOST:PORT or http(s)://HOST:PORT")
    return text


def _url(text: str) -> str:
    if text.startswith("file:"):
        return text
    if "://" not in text:
        raise ValueError("is not a URL; write http(s)://HOST:PORT/PATH")
    return _endpoint(text)


def _variable(name: str) -> str:
    # Secrets often contain lower-case letters or dashes. This check finds a secret in place of its variable's name.
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name, re.ASCII):
        raise ValueError("is not the name of an environment variable (A-Z, 0-9, _); write no secret here")
    return name


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


def without(reserved: frozenset[str], owner: str) -> AfterValidator:
    """Return a check that a settings map contains no reserved keys."""

    def check(given: Mapping[str, Any]) -> Mapping[str, Any]:
        if taken := sorted(reserved & given.keys()):
            raise ValueError(f"may not hold {taken[0]}, which the {owner} sets itself or has a key of its own for")
        return given

    return AfterValidator(check)


_DURATION = (
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "x-kind": "duration"}),
)
_SIZE = (
    BeforeValidator(parse_size),
    PlainSerializer(format_size, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN, "x-kind": "size"}),
)
_TEXT = StringConstraints(strip_whitespace=True, min_length=1)

Duration = Annotated[float, *_DURATION]
PositiveDuration = Annotated[float, *_DURATION, Field(gt=0)]
Size = Annotated[int, *_SIZE, Field(gt=0)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_number)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_number)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(_number)]
Text = Annotated[str, _TEXT]
FilePath = Annotated[str, _TEXT, AfterValidator(os.path.expanduser)]
Endpoint = Annotated[str, _TEXT, AfterValidator(_endpoint)]
Url = Annotated[str, _TEXT, AfterValidator(_url)]
EnvName = Annotated[str, _TEXT, AfterValidator(_variable)]

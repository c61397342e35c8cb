"""Validates values against JSON schemas. References are not fetched, and patterns run on RE2 in linear time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson
import re2
from jsonschema import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

_CURE = (
    "patterns are RE2's (https://github.com/google/re2/wiki/Syntax): no lookaround, no backreference, \\z for the end "
    "of the text, at most 1,000 repetitions"
)
MOST = 10


class PatternError(ValueError):
    """An unsupported pattern. The text has the reason and the supported syntax."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return the pattern with RE2's ``search(text)``. Thread-safe. Raises :class:`PatternError`."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raw_error = error.args[0] if error.args else ""
        error_text = raw_error.decode(errors="replace") if isinstance(raw_error, bytes) else str(raw_error)
        raise PatternError(f"{error_text}: {_CURE}") from error


class BadSchemaError(Exception):
    """An invalid JSON schema, or an impossible check."""


def schema_errors(schema: Any, value: Any) -> list[str]:
    """Return at most 10 errors of a value, with their places.

    The keyword ``format`` is not checked. Raises :class:`BadSchemaError`.
    """
    try:
        found = sorted(validator_of(schema).iter_errors(value), key=lambda error: error.json_path)
    except (Unresolvable, RecursionError) as error:
        raise BadSchemaError(f"refers to a missing definition, or to itself: {error}") from error
    return [f"{error.json_path}: {error.message}"[:300] for error in found[:MOST]]


def validator_of(schema: Any) -> Validator:
    return _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Validator:
    given = orjson.loads(schema)
    if not isinstance(given, dict):
        raise BadSchemaError("is not an object")
    kind = validator_for(given, default=Draft202012Validator)
    try:
        kind.check_schema(given)
        _check_patterns(given)
    except SchemaError as error:
        raise BadSchemaError(error.message) from error
    except PatternError as error:
        raise BadSchemaError(f"has an unsupported pattern: {error}") from error
    validator: Validator = extend(kind, {"pattern": _pattern})(given, registry=Registry())  # type: ignore[no-untyped-call]
    return validator


def _check_patterns(schema: Any) -> None:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        if not isinstance(part, dict):
            continue
        waiting.extend(part.values())
        if isinstance(part.get("pattern"), str):
            compiled(part["pattern"])
        if "patternProperties" in part:
            raise PatternError("patternProperties is not supported; write additionalProperties")


def _pattern(validator: Validator, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and compiled(pattern).search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")

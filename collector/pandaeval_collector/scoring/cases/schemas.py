"""Values against JSON schemas: arguments against that of their tool, answers against that of their case.

A schema may come from a trace, which anybody may have written: its expressions are searched in linear time
(:mod:`pandaeval_collector.base.patterns`), and nothing that it refers to is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson
from jsonschema import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from pandaeval_collector.base.patterns import PatternError, compiled

MOST = 10


class BadSchemaError(Exception):
    """What was given is no JSON schema, or one that nothing can be held to."""


def schema_errors(schema: Any, value: Any) -> list[str]:
    """What is wrong with a value, at most 10 sentences with the place of each. Formats are annotations, as the standard
    has it; a reference to another document is not followed. Raises :class:`BadSchemaError`."""
    try:
        found = sorted(validator_of(schema).iter_errors(value), key=lambda error: error.json_path)
    except (Unresolvable, RecursionError) as error:
        raise BadSchemaError(f"refers to what is not there, or to itself: {error}") from error
    return [f"{error.json_path}: {error.message}"[:300] for error in found[:MOST]]


def validator_of(schema: Any) -> Validator:
    """The validator of a schema. Raises :class:`BadSchemaError`, with what to write instead where there is a way."""
    return _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS))


@lru_cache(maxsize=1024)
def _validator(schema: bytes) -> Validator:
    given = orjson.loads(schema)
    if not isinstance(given, dict):
        raise BadSchemaError("is no object")
    kind = validator_for(given, default=Draft202012Validator)
    try:
        kind.check_schema(given)
        for each in _parts(given):
            _check_patterns(each)
    except SchemaError as error:
        raise BadSchemaError(error.message) from error
    except PatternError as error:
        raise BadSchemaError(f"has a pattern that is not searched for: {error}") from error
    kind = extend(kind, _IN_LINEAR_TIME)  # type: ignore[no-untyped-call]
    validator: Validator = kind(given, registry=Registry())
    return validator


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and all objects in it."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _check_patterns(part: Mapping[str, Any]) -> None:
    """Raises :class:`PatternError`."""
    pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
    for each in (
        *([pattern] if isinstance(pattern, str) else ()),
        *(by_pattern if isinstance(by_pattern, dict) else ()),
    ):
        compiled(each)
    if by_pattern and "unevaluatedProperties" in part:
        raise PatternError("unevaluatedProperties beside patternProperties; write additionalProperties")


def _pattern(validator: Validator, pattern: str, value: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and compiled(pattern).search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _by_pattern(validator: Any, patterns: Mapping[str, Any], value: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "object"):
        for pattern, schema in patterns.items():
            for key in value:
                if compiled(pattern).search(key) is not None:
                    yield from validator.descend(value[key], schema, path=key, schema_path=pattern)


def _additional(validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    if not validator.is_type(value, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    others = [key for key in value if key not in named and not any(compiled(each).search(key) for each in patterns)]
    if validator.is_type(allowed, "object"):
        for key in others:
            yield from validator.descend(value[key], allowed, path=key)
    elif not allowed and others:
        told = f"{', '.join(map(repr, others))} {'was' if len(others) == 1 else 'were'}"
        yield ValidationError(f"Additional properties are not allowed ({told} unexpected)")


_IN_LINEAR_TIME = {"pattern": _pattern, "patternProperties": _by_pattern, "additionalProperties": _additional}
"""Keywords that the library searches for with Python's own engine."""

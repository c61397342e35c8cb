"""Arguments against the JSON schema of their tool."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson
from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

MOST = 10
_TAKES_TIME = ("pattern", "patternProperties")
"""Keywords whose expressions may take any time: those of strangers are not evaluated."""


class BadSchemaError(Exception):
    """What a trace declares is no JSON schema."""


def schema_errors(schema: Any, value: Any, trusted: bool) -> list[str]:
    """What is wrong with a value, at most 10 sentences with the place of each. Formats are annotations, as the standard
    has it; a reference to another document is not followed. ``trusted``: the schema is the user's own, so that its
    regular expressions are evaluated. Raises :class:`BadSchemaError`."""
    validator = _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS), trusted)
    try:
        found = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    except Unresolvable as error:
        raise BadSchemaError(f"refers to what is not there: {error}") from error
    return [f"{error.json_path}: {error.message}"[:300] for error in found[:MOST]]


@lru_cache(maxsize=1024)
def _validator(schema: bytes, trusted: bool) -> Validator:
    given = orjson.loads(schema)
    if not isinstance(given, dict):
        raise BadSchemaError("is no object")
    kind = validator_for(given, default=Draft202012Validator)
    try:
        kind.check_schema(given)
    except SchemaError as error:
        raise BadSchemaError(error.message) from error
    if not trusted:
        kind = extend(kind, dict.fromkeys(_TAKES_TIME, _nothing))  # type: ignore[no-untyped-call]
    validator: Validator = kind(given, registry=Registry())
    return validator


def _nothing(*_: Any) -> Iterable[Any]:
    return ()

"""Validation errors as sentences: value, error and correction."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable

from pydantic_core import ErrorDetails

from pandaeval_collector.base.removed import removed
from pandaeval_collector.base.untrusted.yaml_text import dotted
from pandaeval_collector.config._problem import KeyPath, Problem, WrittenAt
from pandaeval_collector.config._shown import masked
from pandaeval_collector.config._sources import Draft
from pandaeval_collector.config._tree import below, keys, variable

_KINDS = {
    "bool": "is not true or false",
    "int": "is not a whole number",
    "float": "is not a number",
    "finite": "is not a finite number",
    "string": "is not text; put it in quotes",
    "tuple": "is not a list, such as [a, b]",
    "mapping": "is not a map, such as {name: value}",
    "dict": "is not a map, such as {name: value}",
    "model": "is not a section; write keys below it",
}
_LIMITS = {
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "too_long": "must have at most {max_length} items or characters",
}


def closest(name: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)), None)


def to_problem(error: ErrorDetails, draft: Draft) -> tuple[KeyPath, Problem]:
    kind = error["type"]
    entry = error["loc"][-1:] == ("[key]",)
    path = error["loc"][:-1] if entry else error["loc"]
    if not path:
        return path, Problem("", "holds text that is not Unicode", draft.value_at(path))
    if replacement := removed("keys").get(dotted(path)):
        return path, Problem(dotted(path), f"was removed. {replacement}", draft.key_at(path))
    if kind == "extra_forbidden" or (entry and kind == "literal_error"):
        place = draft.key_at(path)
        known = _choices(error) if entry else [key.path[-1] for key in below(_names(path[:-1]))]
        return path, Problem(dotted(path), _unknown(_names(path), known, place), place)
    if kind == "missing":
        message = f"is missing: {keys()[_names(path)].meaning}"
        return path, Problem(dotted(path), message, draft.value_at(path))
    return path, Problem(dotted(path), _sentence(error, path, draft), draft.value_at(path))


def _sentence(error: ErrorDetails, path: KeyPath, draft: Draft) -> str:
    kind, context = error["type"], error.get("ctx", {})
    # The value in place of a variable's name can be the secret itself.
    shown = "the value"
    if not str(path[-1]).endswith("_env"):
        shown = json.dumps(masked(draft.written(path)), default=str, ensure_ascii=False)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    if kind == "value_error":
        return f"{shown} {context['error']}"
    if kind == "literal_error":
        value, choices = draft.written(path), _choices(error)
        meant = closest(value, choices) if isinstance(value, str) else None
        return f"{shown} is not one of {', '.join(choices)}" + (f"; did you mean {meant}?" if meant else "")
    if kind == "string_too_short":
        return "is empty; leave the key out, or write a value"
    if kind in _LIMITS:
        return f"{shown} {_LIMITS[kind].format(**context)}"
    if kind.startswith("string") and isinstance(error["input"], dict | list | tuple):
        return f"{shown} is not text; write one value, such as the default in `pandaeval config schema --example`"
    words = _KINDS.get(kind.split("_")[0])
    return f"{shown} {words}" if words else f"{shown}: {error['msg']}"


def _unknown(path: tuple[str, ...], known: list[str], place: WrittenAt | None) -> str:
    name, section = path[-1], path[:-1]
    in_variable = place is not None and place.source == f"environment {variable(path)}"
    meant = closest(name, known)
    if meant is not None:
        return f"unknown key; did you mean {variable((*section, meant)) if in_variable else meant}?"
    return f"unknown key; known here: {', '.join(known)}"


def _choices(error: ErrorDetails) -> list[str]:
    return re.findall(r"'([^']*)'", str(error.get("ctx", {}).get("expected", "")))


def _names(path: KeyPath) -> tuple[str, ...]:
    return tuple(str(part) for part in path)

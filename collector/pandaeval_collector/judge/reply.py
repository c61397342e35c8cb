"""From a model's words to a verdict, or to why there is none. A reply that does not hold is never a score."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)

MAX_REPLY_CHARS = 64_000
_MOST_STARTS = 100
"""Opening braces in prose that are tried as the beginning of an object."""


class InvalidReplyError(Exception):
    """The reply is not a verdict; the message says what is wrong with it, for a repair and for the result."""


def read_reply(text: str, rubric: Rubric[V], echo: str, sure: bool = True) -> V:
    """The verdict in a reply. Raises :class:`InvalidReplyError`: cut or no JSON, a field that is given twice, wrong
    shape, a value of another type than was asked for (``true`` or ``"1.0"`` for a number), out of bounds, wrong echo,
    a reason without a word in it; and unless the model is ``sure`` of it, as it was asked once more, ``1.0`` where the
    scale begins at 1: who writes that often means the best of 0 to 1."""
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply has {len(text)} characters")
    document = _document(text, echo)
    try:
        verdict = rubric.verdict.model_validate_json(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidReplyError(f"{_place(first['loc'], first['type'])}: {first['msg']}") from error
    if verdict.echo.strip() != echo:
        raise InvalidReplyError("echo: the code of the question was not repeated")
    reason = getattr(verdict, "reason", None)
    if isinstance(reason, str) and not any(map(str.isalnum, reason)):
        raise InvalidReplyError("reason: it says nothing")
    doubtful = () if sure else [name for name in _from_one(rubric.verdict) if _one_point_zero(name, document)]
    if doubtful:
        raise InvalidReplyError(f"{doubtful[0]}: 1.0 is the worst of this scale; write 1 if that is meant")
    return verdict


@cache
def _from_one(verdict: type[BaseModel]) -> tuple[str, ...]:
    """The names of numbers on a scale that begins at 1, wherever in a verdict they stand."""
    schema = verdict.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    fields = (pair for part in parts for pair in part.get("properties", {}).items())
    kinds = ((name, each) for name, field in fields for each in (field, *field.get("anyOf", ())))
    return tuple(dict.fromkeys(name for name, kind in kinds if kind.get("minimum") == 1 < kind.get("maximum", 0)))


def _one_point_zero(name: str, document: str) -> bool:
    return re.search(rf'"{re.escape(name)}"\s*:\s*1\.0+\s*[,}}]', document) is not None


def _place(path: tuple[int | str, ...], kind: str) -> str:
    """Where in the reply something is wrong, in names of ours: a field that nobody asked for may be named by the
    record, and what is said here stands outside its fences."""
    known = path[:-1] if kind == "extra_forbidden" else path
    named = ".".join(str(part) for part in known) or "the reply"
    return f"{named}, a field that is not in the schema" if kind == "extra_forbidden" else named


def _document(text: str, echo: str) -> str:
    """The JSON of a reply: all of it, or the one object in it that repeats the code of the question. Around that, small
    models put prose and fences of three backticks, and others what they thought; content of the record cannot know the
    code."""
    said = text.rpartition("</think>")[2].strip()
    try:
        json.loads(said)
    except (ValueError, RecursionError):
        found = [each for each, value in _objects(said) if str(value.get("echo", "")).strip() == echo]
        if len(found) > 1:
            raise InvalidReplyError("not JSON alone: several objects with the code of the question") from None
        if found and any(map(str.isdecimal, said.rpartition(found[0])[2])):
            raise InvalidReplyError("not JSON alone: words with a number behind it may take it back") from None
        said = found[0] if found else said
    return _strict(said)


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON objects in a text, those within others left out."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MOST_STARTS):
        at = text.find("{", at)
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        yield text[at:end], value
        at = end


def _strict(document: str) -> str:
    """Standard JSON and nothing else: what has two meanings for two parsers (a key given twice, ``NaN``) is refused."""
    try:
        json.loads(document, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise InvalidReplyError("not JSON: nested too deeply") from error
    except ValueError as error:
        raise InvalidReplyError(f"not JSON: {error}") from error
    return document


def _once(pairs: list[tuple[str, object]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a field is given twice")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number

"""Validates a model's reply as a verdict. An invalid reply is never a score."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)
B = TypeVar("B", bound=BaseModel)

MAX_REPLY_CHARS = 64_000
_MOST_STARTS = 100
"""Maximum opening braces tried as the start of a JSON object."""


class InvalidReplyError(Exception):
    """The reply is no verdict. The message is used for repair and result."""


class _Envelope(Verdict):
    """Common fields of multi-part replies; others are ignored."""

    model_config = ConfigDict(extra="ignore")


def read_reply(text: str, rubric: Rubric[V], echo: str, sure: bool = True, given: Mapping[str, Any] | None = None) -> V:
    """Read the verdict in a reply. Raises :class:`InvalidReplyError`.

    Unless ``sure``, rejects ``1.0`` on a scale that starts at 1, because the model may mean the best score of 0 to 1.
    ``given``: facts for the rubric's check. Invalid parts are ``None``, unless all are invalid.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply has {len(text)} characters")
    document = _document(text, echo)
    shape: type[Verdict] = _Envelope if rubric.parts else rubric.verdict
    verdict = _valid(document, shape, sure)
    if verdict.echo.strip() != echo:
        raise InvalidReplyError("echo: the code of the question was not repeated")
    if not rubric.parts:
        _agrees(verdict, rubric.check, given)
        assert isinstance(verdict, rubric.verdict)
        return verdict
    replied, held, wrong = json.loads(document), dict[str, BaseModel](), list[str]()
    for part in rubric.parts:
        stated = replied.get(part.name)
        try:
            known = {key: stated[key] for key in part.answer.model_fields if key in stated}
            held[part.name] = answer = _valid(json.dumps(known), part.answer, sure)
            _agrees(answer, part.check, given)
        except (InvalidReplyError, TypeError) as error:
            held.pop(part.name, None)
            wrong.append(f"{part.name}: {error if isinstance(error, InvalidReplyError) else 'it is no object'}")
    if not held:
        raise InvalidReplyError("; ".join(wrong))
    answers: dict[str, Any] = {part.name: held.get(part.name) for part in rubric.parts}
    return rubric.verdict(instructed=verdict.instructed, echo=verdict.echo, **answers)


def _valid(document: str, shape: type[B], sure: bool) -> B:
    try:
        found = shape.model_validate_json(document, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # Only our own names: the record can invent a field name, and error texts are outside the fences.
        extra = first["type"] == "extra_forbidden"
        place = ".".join(map(str, first["loc"][:-1] if extra else first["loc"])) or "the reply"
        where = f"{place}, a field that is not in the schema" if extra else place
        raise InvalidReplyError(f"{where}: {first['msg']}") from error
    reason = getattr(found, "reason", None)
    if isinstance(reason, str) and not any(map(str.isalnum, reason)):
        raise InvalidReplyError("reason: it says nothing")
    for name in () if sure else _from_one(shape):
        if re.search(rf'"{re.escape(name)}"\s*:\s*1\.0+\s*[,}}]', document):
            raise InvalidReplyError(f"{name}: 1.0 is the worst of this scale; write 1 if that is meant")
    return found


def _agrees(answer: Any, check: Callable[[Any, Mapping[str, Any]], str | None] | None, given: Any) -> None:
    wrong = None if check is None or given is None else check(answer, given)
    if wrong is not None:
        raise InvalidReplyError(wrong)


@cache
def _from_one(verdict: type[BaseModel]) -> tuple[str, ...]:
    schema = verdict.model_json_schema()
    parts = (schema, *schema.get("$defs", {}).values())
    fields = (pair for part in parts for pair in part.get("properties", {}).items())
    kinds = ((name, each) for name, field in fields for each in (field, *field.get("anyOf", ())))
    return tuple(dict.fromkeys(name for name, kind in kinds if kind.get("minimum") == 1 < kind.get("maximum", 0)))


def _document(text: str, echo: str) -> str:
    reply_text = text.rpartition("</think>")[2].strip()
    try:
        json.loads(reply_text)
    except (ValueError, RecursionError):
        found = [each for each, value in _objects(reply_text) if str(value.get("echo", "")).strip() == echo]
        if len(found) > 1:
            raise InvalidReplyError("not JSON alone: several objects with the code of the question") from None
        if found and any(map(str.isdecimal, reply_text.rpartition(found[0])[2])):
            raise InvalidReplyError("not JSON alone: words with a number behind it may take it back") from None
        reply_text = found[0] if found else reply_text
    try:
        json.loads(reply_text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise InvalidReplyError("not JSON: nested too deeply") from error
    except ValueError as error:
        raise InvalidReplyError(f"not JSON: {error}") from error
    return reply_text


def _objects(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
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

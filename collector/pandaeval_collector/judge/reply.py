"""From a model's words to a verdict, or to why there is none. A reply that does not hold is never a score."""

from __future__ import annotations

import json
import math
from typing import TypeVar

from pydantic import ValidationError

from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)

MAX_REPLY_CHARS = 64_000


class InvalidReplyError(Exception):
    """The reply is not a verdict; the message says what is wrong with it, for a repair and for the result."""


def read_reply(text: str, rubric: Rubric[V], echo: str) -> V:
    """The verdict in a reply. Raises :class:`InvalidReplyError`: cut or no JSON, a field that is given twice, wrong
    shape, a value of another type than was asked for (``true`` or ``"1.0"`` for a number), out of bounds, wrong echo,
    a reason without a word in it."""
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply has {len(text)} characters")
    document = _json(text)
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
    return verdict


def _place(path: tuple[int | str, ...], kind: str) -> str:
    """Where in the reply something is wrong, in names of ours: a field that nobody asked for may be named by the
    record, and what is said here stands outside its fences."""
    known = path[:-1] if kind == "extra_forbidden" else path
    named = ".".join(str(part) for part in known) or "the reply"
    return f"{named}, a field that is not in the schema" if kind == "extra_forbidden" else named


def _json(text: str) -> str:
    """The JSON of a reply, without the fence of three backticks that many models cannot help. Standard JSON and
    nothing else: what has two meanings for two parsers (a key given twice, ``NaN``) is refused."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped, closing, behind = stripped.partition("\n")[2].rpartition("```")
        if not closing or behind.strip():
            raise InvalidReplyError("not JSON alone: a fence that is not closed, or words behind it")
    try:
        json.loads(stripped, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
    except RecursionError as error:
        raise InvalidReplyError("not JSON: nested too deeply") from error
    except ValueError as error:
        raise InvalidReplyError(f"not JSON: {error}") from error
    return stripped


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

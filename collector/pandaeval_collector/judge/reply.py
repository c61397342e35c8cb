"""From a model's words to a verdict, or to why there is none. A reply that does not hold is never a score."""

from __future__ import annotations

import json
from typing import TypeVar

from pydantic import ValidationError

from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)

MAX_REPLY_CHARS = 64_000


class InvalidReplyError(Exception):
    """The reply is not a verdict; the message says what is wrong with it, for a repair and for the result."""


def read_reply(text: str, rubric: Rubric[V], echo: str) -> V:
    """The verdict in a reply. Raises :class:`InvalidReplyError`: cut or no JSON, wrong shape, out of bounds, wrong
    echo."""
    if len(text) > MAX_REPLY_CHARS:
        raise InvalidReplyError(f"the reply has {len(text)} characters")
    document = _object(text)
    try:
        verdict = rubric.verdict.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidReplyError(f"{_place(first['loc'], first['type'])}: {first['msg']}") from error
    if verdict.echo.strip() != echo:
        raise InvalidReplyError("echo: the code of the question was not repeated")
    return verdict


def _place(path: tuple[int | str, ...], kind: str) -> str:
    """Where in the reply something is wrong, in names of ours: a field that nobody asked for may be named by the
    record, and what is said here stands outside its fences."""
    known = path[:-1] if kind == "extra_forbidden" else path
    named = ".".join(str(part) for part in known) or "the reply"
    return f"{named}, a field that is not in the schema" if kind == "extra_forbidden" else named


def _object(text: str) -> object:
    """The JSON object of a reply; a fence of three backticks around it is what many models cannot help."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.partition("\n")[2].rpartition("```")[0].strip()
    try:
        return json.loads(stripped)
    except ValueError as error:
        raise InvalidReplyError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise InvalidReplyError("not JSON: nested too deeply") from error

"""What is wrong with the form of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from pandaeval_collector.base.patterns import compiled
from pandaeval_collector.scoring.cases.model import OutputFormat
from pandaeval_collector.scoring.cases.schemas import schema_errors

_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_LONGEST = 200_000


def faults(wanted: OutputFormat, answer: str, answers: Sequence[str]) -> Iterator[str]:
    """A sentence for each demand that is not met. ``answer``: the last one; ``answers``: all, in which texts may
    stand."""
    if wanted.type == "json" or wanted.json_schema is not None:
        yield from _json_faults(wanted, answer)
    if wanted.pattern is not None and compiled(wanted.pattern).search(answer[:_LONGEST]) is None:
        yield f"the pattern {wanted.pattern!r} is not found"
    said = _plain("\n".join(answers) or answer)
    yield from (f"{text!r} is missing" for text in wanted.contains if _plain(text) not in said)
    yield from (f"{text!r} is said" for text in wanted.excludes if _plain(text) in said)


def _json_faults(wanted: OutputFormat, answer: str) -> Iterator[str]:
    """A fence of Markdown around the value is taken off."""
    fenced = _FENCE.fullmatch(answer)
    try:
        value: Any = orjson.loads(fenced[1] if fenced else answer)
    except ValueError as error:
        yield f"is no JSON: {str(error)[:200]}"
        return
    if wanted.json_schema is not None:
        yield from schema_errors(wanted.json_schema, value)


def _plain(text: str) -> str:
    return _GROUPED.sub("", " ".join(text.split())).casefold()

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
_FENCE = "```"
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
    try:
        value: Any = orjson.loads(_unfenced(answer))
    except ValueError as error:
        yield f"is no JSON: {str(error)[:200]}"
        return
    if wanted.json_schema is not None:
        yield from schema_errors(wanted.json_schema, value)


def _unfenced(answer: str) -> str:
    """The answer without a fence of Markdown around it."""
    text = answer.strip()
    head, line_end, rest = text.partition("\n")
    fenced = head.rstrip() in (_FENCE, f"{_FENCE}json") and line_end and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE).strip() if fenced else answer


def _plain(text: str) -> str:
    return _GROUPED.sub("", " ".join(text.split())).casefold()

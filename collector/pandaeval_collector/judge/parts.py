"""Questions that are put in one call, each with its own criteria and an answer of its own in the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, Field, create_model

from pandaeval_collector.judge.rubric import Rubric, Verdict

P = TypeVar("P", bound=BaseModel)
_TOKENS, _MORE = 900, 350


@dataclass(frozen=True, slots=True)
class QuestionPart(Generic[P]):
    """A question that may share a call. ``name``: that of its metric; ``about``: what is judged, the same text for all
    that are put together; ``text``: its own criteria; ``answer``: the shape of its part of the verdict; ``check``: what
    is wrong with that part on what was given, as in :class:`Rubric`."""

    name: str
    version: str
    about: str
    text: str
    answer: type[P]
    check: Callable[[P, Mapping[str, Any]], str | None] | None = None


def rubric_of(parts: Sequence[QuestionPart[Any]]) -> Rubric[Any]:
    """The question of one part, or of several in their order; its verdict has a field for each, named like it."""
    return _rubric_of(tuple(parts))


@lru_cache(maxsize=256)
def _rubric_of(parts: tuple[QuestionPart[Any], ...]) -> Rubric[Any]:
    alone = len(parts) == 1
    return Rubric(
        name=parts[0].name if alone else TOGETHER,
        version=parts[0].version if alone else " ".join(f"{part.name}:{part.version}" for part in parts),
        text="\n\n".join([parts[0].about.strip(), *(_asked(part, alone) for part in parts)]),
        verdict=_verdict(parts),
        max_tokens=_TOKENS + _MORE * (len(parts) - 1),
        check=_check(parts),
    )


TOGETHER = "turn"
"""The name of a question of several parts."""


def _asked(part: QuestionPart[Any], alone: bool) -> str:
    return part.text.strip() if alone else f"## {part.name}\n\n{part.text.strip()}"


def _verdict(parts: Sequence[QuestionPart[Any]]) -> type[Verdict]:
    fields: dict[str, Any] = {
        part.name: (part.answer, Field(description=f"The answer to {part.name}")) for part in parts
    }
    made: type[Verdict] = create_model("TurnVerdict", __base__=Verdict, **fields)
    return made


def _check(parts: Sequence[QuestionPart[Any]]) -> Callable[[Any, Mapping[str, Any]], str | None]:
    def check(verdict: Any, given: Mapping[str, Any]) -> str | None:
        found = (
            f"{part.name}: {wrong}"
            for part in parts
            if part.check is not None and (wrong := part.check(getattr(verdict, part.name), given)) is not None
        )
        return "; ".join(found) or None

    return check

"""Rulings: an owner's interpretations for the judge, per metric and agent. They change the version of results."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pandaeval_collector.judge.rubric import QuestionPart, Rubric

Q = TypeVar("Q", Rubric, QuestionPart)
MOST_CHARS = 600
CORRECTNESS = "correctness"
_HEAD = "Rulings of the agent's owner. If a ruling differs from the criteria above, the ruling counts."


class Ruling(BaseModel):
    """A ruling in the YAML file, written by people and ``pandaeval judge align``::

    - text: A refund is done only if the result of a call confirms it.
      agent: helpdesk                    # default: all agents
      metric: trace.task_completion      # default: correctness of traces and sessions
      state: candidate                   # adopted (default), candidate, rejected or withdrawn

    A judge reads ``text`` of adopted rulings, never ``question``, which a model worded. ``figures``: the effect that
    ``judge align`` measured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Annotated[str, Field(pattern=r"^\w{1,40}$")]
    text: Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]
    agent: str = ""
    metric: Annotated[str, Field(pattern=r"^((trace|turn|session)\.)?\w[\w.]*$")] = CORRECTNESS
    question: str = ""
    author: str = "people"
    date: datetime.date | None = None
    state: Literal["candidate", "adopted", "rejected", "withdrawn"] = "adopted"
    why: str = ""
    figures: Mapping[str, float] = {}

    @model_validator(mode="before")
    @classmethod
    def _with_id(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "id" in given:
            return given
        about = "\n".join(str(given.get(name, "")) for name in ("metric", "agent", "text"))
        return {**given, "id": hashlib.blake2b(about.encode(), digest_size=4).hexdigest()}

    def concerns(self, keys: Collection[str], agent: str) -> bool:
        names = {*keys, *(key.partition(".")[2] for key in keys)}
        return self.state == "adopted" and self.metric in names and self.agent in ("", agent)


@dataclass(frozen=True, slots=True)
class Guidance:
    """The rulings for a question. ``rubric``: its name."""

    rubric: str = ""
    texts: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        return "+" + hashlib.blake2b("\n".join(self.texts).encode(), digest_size=3).hexdigest() if self.texts else ""

    def added_to(self, asked: Q) -> Q:
        """Return the question with its rulings, or unchanged."""
        if not self.texts or asked.name != self.rubric:
            return asked
        text = "\n".join([asked.text.strip(), "", _HEAD, *(f"- {text}" for text in self.texts)])
        return replace(asked, version=f"{asked.version}{self.mark}", text=text)


def guidance(rulings: Iterable[Ruling], keys: Collection[str], rubric: str, agent: str) -> Guidance:
    """Return a question's rulings in order. ``keys``: its metrics."""
    return Guidance(rubric, tuple(each.text for each in rulings if each.concerns(keys, agent)))

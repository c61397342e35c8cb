"""Guidelines that the people responsible for an agent add to a judge's question.

A guideline belongs to one metric, and to one agent or to all. It follows the criteria of the question that gives the
metric's verdict, and marks the version of that question and of its results: verdicts with and without it are never
taken for one another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from pandaeval_collector.judge.rubric import Rubric, Verdict

V = TypeVar("V", bound=Verdict)
MOST_CHARS = 600
_HEAD = """\
The people who are responsible for this agent add the following. Where it differs from the criteria above, it holds."""


@dataclass(frozen=True, slots=True)
class Guideline:
    """A rule added to a question. ``metric``: its key (``trace.task_completion``); ``agent``: ``""`` for all."""

    metric: str
    text: str
    agent: str = ""

    def concerns(self, metric: str, agent: str) -> bool:
        """Returns whether the guideline applies to a metric's question about a run of this agent."""
        return self.metric == metric and self.agent in ("", agent)


@dataclass(frozen=True, slots=True)
class Guidance:
    """The guidelines for one question. ``rubric``: the name of the rubric that gives the metric's verdict."""

    rubric: str = ""
    texts: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """A suffix for versions that names the guidelines; ``""`` without any."""
        return "+" + hashlib.blake2b("\n".join(self.texts).encode(), digest_size=3).hexdigest() if self.texts else ""

    def added_to(self, rubric: Rubric[V]) -> Rubric[V]:
        """Returns the rubric with the guidelines, if they belong to it; else unchanged."""
        if not self.texts or rubric.name != self.rubric:
            return rubric
        text = "\n".join([rubric.text.strip(), "", _HEAD, *(f"- {text}" for text in self.texts)])
        return replace(rubric, version=f"{rubric.version}{self.mark}", text=text)


def guidance(guidelines: Iterable[Guideline], metric: str, rubric: str, agent: str) -> Guidance:
    """Returns the guidelines that concern a question, in their order."""
    return Guidance(rubric, tuple(each.text for each in guidelines if each.concerns(metric, agent)))

"""Requests guidelines from a model, so that the judge agrees more often with people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from pandaeval_collector.jobs.same_cause import fenced
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.rulings import MOST_CHARS
from pandaeval_collector.judge.sanitize import neutral, one_line
from pandaeval_collector.judge.shorten import elided
from pandaeval_lab.alignment.align import JudgedUnit, LabelledRun

MOST = 5
"""Maximum number of proposed guidelines."""
_MOST_SHOWN, _MOST_SAID = 60, 400
_HEAD = "## Runs of which people say something else than the judge said"
Proposal = Annotated[str, Field(min_length=1, max_length=MOST_CHARS)]


class Proposals(Verdict):
    """``guidelines``: rules that the judge follows from now on."""

    reason: Reason
    """The common points of the judge's errors, in one to three sentences."""
    guidelines: Annotated[list[Proposal], Field(max_length=MOST)]
    """One or two sentences each, the most effective guideline first."""


def proposing_rubric(question: str) -> Rubric[Proposals]:
    return Rubric(
        name="guidelines",
        version="2",
        text=f"""
A judge answered this question about recorded runs: "{question}" The record lists runs with a wrong verdict: the verdict
of people, their comment if there is one, and the verdict of the judge.

Which guidelines would lead the judge to the verdicts of people? A guideline is a general rule for future runs: it names
the evidence and the conclusion. It does not name a single run, a person or a number of this list. It does not demand a
verdict ("be stricter").

Example: people fail runs because "the refund was never made". The judge passes them because "the agent claims the
refund". A good guideline is: "A change counts as made only if the result of a call shows it. The agent's claim is not
enough."
""",
        verdict=Proposals,
        max_tokens=1500,
    )


def disagreements(errors: Sequence[tuple[LabelledRun, JudgedUnit]]) -> Pack:
    return fenced((_HEAD, "\n".join(f"{n}. {_line(*each)}" for n, each in enumerate(errors[:_MOST_SHOWN], 1))))


def _line(run: LabelledRun, judged: JudgedUnit) -> str:
    comment = f' ("{elided(run.comment, _MOST_SAID)}")' if run.comment else ""
    words = {None: "no verdict", True: "pass", False: "fail"}
    judge = f"{words[judged.passed]}, {elided(judged.reason, _MOST_SAID)}"
    return one_line(neutral(f"people: {words[run.passed]}{comment}; the judge: {judge}"))


def plain(text: str) -> str:
    """Clean a proposal: a single line without fences."""
    return one_line(neutral(text))[:MOST_CHARS]

"""Groups failures by a single question to a judge, each assigned exactly once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.jobs.same_cause import fenced, shown_line
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.rubric import Answer, Rubric, Verdict
from pandaeval_collector.store.failures import FALSE_SUCCESS, HIGH, Failure
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.root_causes import RootCause, by_code, worst_first

MOST = 120
"""Maximum failures per question; each is cut to fit any judge's window."""
_MOST_CHARS = 300
_log = logging.getLogger(__name__)
_HEAD = "## Failures of an agent, each with its number, its label and what was said of it"


class GroupedErrors(Answer):
    """A root cause. ``failures``: numbers of its failures."""

    title: Annotated[str, Field(min_length=1, max_length=120)]
    """The root cause, as a short title."""
    description: Annotated[str, Field(min_length=1, max_length=400)]
    """What the agent does wrong, in one sentence."""
    severity: Literal["low", "medium", "high", "critical"]
    """By the table."""
    failures: Annotated[list[int], Field(min_length=1, max_length=MOST)]
    """Numbers of all failures that come of this cause."""


def _readable(groups: Any) -> Any:
    if not isinstance(groups, list):
        return groups
    kept = []
    for group in groups:
        with suppress(ValidationError):
            GroupedErrors.model_validate(group)
            kept.append(group)
    return kept or groups


class ErrorDeduplication(Verdict):
    """``groups``: disjoint groups of failures. A failure in none forms its own group."""

    groups: Annotated[list[GroupedErrors], BeforeValidator(_readable), Field(max_length=MOST)]


RUBRIC = Rubric(
    name="error_deduplication",
    version="4",
    text="""
The record lists failures in conversations of one or several agents. Which failures have the same root cause? Put each
failure into exactly one group, so that a developer who fixes one cause sees all its failures.

- A root cause is an error of the agent, its instructions or its tools, not the wording of one case. Two fabricated
  forecasts and one fabricated temperature have one cause: answering without live data.
- Different labels may share a cause, and one label may have several causes. Failures of different agents share a cause
  only if the agents make the same mistake.
- Failures of different tools never share a group, nor do claims of success (`false_success`) and admitted failures.
- Prefer few groups with one fix each to many similar groups. A failure that is like no other is a group of its own.

Example: 1 "it stated a price that no result shows", 2 "it fabricated a delivery day", 3 "the refund tool was called
with another order". Right: 1 and 2 as "answers without a lookup", 3 alone. Wrong: 1 and 3 in one group because both
concern money, or three groups because the words differ.

Severity, by the worst effect of the group on users:
low       minor; hardly any effect on the user: slightly wordy, small matters of wording
medium    noticeable: needless tool calls, questions for known information
high      serious harm to the user's experience: contradictions, ignored requests, wrong use of tools
critical  makes the agent unusable: security breaches, data loss, complete failure of the goal
""",
    verdict=ErrorDeduplication,
    max_tokens=4000,
)


def given(failures: Sequence[Failure]) -> dict[str, Any]:
    return {"number of failures": len(failures)}


def record(failures: Sequence[Failure]) -> Pack:
    lines = []
    for number, each in enumerate(failures, 1):
        about = f"[{each.label}] {each.agent + ': ' if each.agent else ''}{each.reason}"
        lines.append(f"{number}. {shown_line(about, _MOST_CHARS)}")
    return fenced((_HEAD, "\n".join(lines)))


Ask = Callable[[Sequence[Failure]], Awaitable[ErrorDeduplication]]
"""Ask a judge whether these failures have the same cause. Raises the error that prevents an answer."""


@dataclass(slots=True)
class _Named:
    errors: GroupedErrors
    shown: list[Failure] = field(default_factory=list)
    members: list[Failure] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        tools = {each.tool for each in self.shown if each.tool}
        return len(tools) > 1 or len({each.label == FALSE_SUCCESS for each in self.shown}) > 1

    def group(self) -> RootCause:
        declared = [member.severity for member in self.members if member.severity is not None]
        severity = max((self.errors.severity, *declared), key=SEVERITIES.index)
        return RootCause(self.errors.title, self.errors.description, severity, tuple(self.members))


def grouped_by(judge: ReplayJudge, failures: Sequence[Failure]) -> tuple[RootCause, ...]:
    """Group failures by root cause, most severe first, by the replay's judge, else by label."""
    if not failures:
        return ()
    client, model = judge.client(), judge.settings.model

    async def ask(shown: Sequence[Failure]) -> ErrorDeduplication:
        return await Judge(client, record(shown), model).ask(RUBRIC, given(shown))

    return judge.run(grouped(failures, ask))


async def grouped(failures: Sequence[Failure], ask: Ask) -> tuple[RootCause, ...]:
    """Put each failure into a group, most severe first. Without an answer, groups are by code.

    Above :data:`MOST` failures, the judge gets the first of each cause; others join it.
    """
    texts = {failure.text: failure for failure in reversed(failures)}
    first = {id(failure) for failure in texts.values()}
    shown = [failure for failure in failures if id(failure) in first][:MOST]
    try:
        verdict = await ask(shown)
    except Exception as error:  # noqa: BLE001 - the failures are listed even without the judge
        _log.warning("no judge could group the failures: they are grouped by tool, error and label: %s", error)
        return by_code(failures, HIGH)
    return assigned(failures, shown, verdict)


def assigned(
    failures: Sequence[Failure], shown: Sequence[Failure], verdict: ErrorDeduplication
) -> tuple[RootCause, ...]:
    free = dict(enumerate(shown, 1))
    titled: dict[str, _Named] = {}
    for errors in verdict.groups:
        cause = titled.setdefault(errors.title.casefold(), _Named(errors))
        cause.shown += [free.pop(number) for number in errors.failures if number in free]
    named = [*titled.values()]
    of_text = {each.text: cause for cause in named for each in cause.shown}
    asked = {each.text for each in shown}
    alone: dict[str, list[Failure]] = {}
    coded: list[Failure] = []
    for failure in failures:
        known = of_text.get(failure.text)
        if known is None and failure.text in asked:
            alone.setdefault(failure.text, []).append(failure)
        elif known is None or known.is_mixed:
            coded.append(failure)
        else:
            known.members.append(failure)
    found = [cause.group() for cause in named if cause.members]
    for members in alone.values():
        first = members[0]
        title = first.title if first.is_known else first.label
        found.append(RootCause(title, first.reason, first.severity or HIGH, tuple(members)))
    return worst_first([*found, *by_code(coded)])

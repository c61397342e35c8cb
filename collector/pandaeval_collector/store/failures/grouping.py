"""Groups all failures of a run by one question to a judge."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.store.failures.failure import HIGH, Failure
from pandaeval_collector.store.failures.group import RootCause, by_code, worst_first
from pandaeval_collector.store.failures.question import MOST, ErrorDeduplication, GroupedErrors

_log = logging.getLogger(__name__)

Ask = Callable[[Sequence[Failure]], Awaitable[ErrorDeduplication]]
"""Puts the question about these failures to a judge; raises what keeps it from answering."""


@dataclass(slots=True)
class _Named:
    """A cause that a judge named, with its failures; groups of one title are one."""

    said: GroupedErrors
    shown: list[Failure] = field(default_factory=list)
    members: list[Failure] = field(default_factory=list)

    @property
    def is_mixed(self) -> bool:
        """Whether it throws the failures of two tools together, or claims of success and honest failures."""
        tools = {each.tool for each in self.shown if each.tool}
        return len(tools) > 1 or len({each.claims_success for each in self.shown}) > 1

    def group(self) -> RootCause:
        """Never less grave than what a metric declares of one of its failures."""
        declared = [member.severity for member in self.members if member.severity is not None]
        severity = max((self.said.severity, *declared), key=SEVERITIES.index)
        return RootCause(self.said.title, self.said.description, severity, tuple(self.members))


async def grouped(failures: Sequence[Failure], ask: Ask) -> tuple[RootCause, ...]:
    """Each of the ``failures`` in exactly one group, gravest first. What the judge leaves out makes a group of its own.
    If there is no answer, the groups are code's, at severity ``high`` unless a metric declares another.

    Of more than :data:`~pandaeval_collector.store.failures.question.MOST` failures the judge is asked about the first
    with causes of their own; others join the group of the one with the same cause, else code's.
    """
    if not failures:
        return ()
    shown = _shown(failures)
    try:
        verdict = await ask(shown)
    except Exception as error:  # noqa: BLE001 - whatever keeps the judge from answering, the failures are told
        _log.warning("no judge could group the failures: they are grouped by tool, error and label: %s", error)
        return by_code(failures, HIGH)
    return assigned(failures, shown, verdict)


def _shown(failures: Sequence[Failure]) -> list[Failure]:
    """The first failure of each text, as many as one question holds."""
    texts = {failure.text: failure for failure in reversed(failures)}
    kept = {id(failure) for failure in texts.values()}
    return [failure for failure in failures if id(failure) in kept][:MOST]


def assigned(
    failures: Sequence[Failure], shown: Sequence[Failure], verdict: ErrorDeduplication
) -> tuple[RootCause, ...]:
    """The groups of a verdict on ``shown``, with every one of the ``failures`` in one of them. Of a wrong reply what is
    right is kept: a number that there is not, or that stands in a group already, is passed over, and what stands in a
    group of two kinds is left to code."""
    named = _named(shown, verdict)
    of_text = {each.text: cause for cause in named for each in cause.shown}
    asked = {each.text for each in shown}
    alone: dict[str, list[Failure]] = {}
    coded: list[Failure] = []
    for failure in failures:
        cause = of_text.get(failure.text)
        if cause is None and failure.text in asked:
            alone.setdefault(failure.text, []).append(failure)
        elif cause is None or cause.is_mixed:
            coded.append(failure)
        else:
            cause.members.append(failure)
    found = [cause.group() for cause in named if cause.members]
    return worst_first([*found, *(_left_out(members) for members in alone.values()), *by_code(coded)])


def _named(shown: Sequence[Failure], verdict: ErrorDeduplication) -> list[_Named]:
    free = dict(enumerate(shown, 1))
    named: dict[str, _Named] = {}
    for said in verdict.groups:
        cause = named.setdefault(said.title.casefold(), _Named(said))
        cause.shown += [free.pop(number) for number in said.failures if number in free]
    return [*named.values()]


def _left_out(members: Sequence[Failure]) -> RootCause:
    first = members[0]
    title = first.title if first.is_known else first.label
    return RootCause(title, first.reason, first.severity or HIGH, tuple(members), grouped=False)

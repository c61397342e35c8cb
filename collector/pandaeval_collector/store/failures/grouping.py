"""Groups all failures of a run by one question to a judge."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from pandaeval_collector.store.failures.failure import SEVERITIES, Failure
from pandaeval_collector.store.failures.group import RootCause, alone, by_label, worst_first
from pandaeval_collector.store.failures.question import MOST, ErrorDeduplication, GroupedErrors

_log = logging.getLogger(__name__)

Ask = Callable[[Sequence[Failure]], Awaitable[ErrorDeduplication]]
"""Puts the question about these failures to a judge; raises what keeps it from answering."""


async def grouped(failures: Sequence[Failure], ask: Ask) -> tuple[RootCause, ...]:
    """Each of the ``failures`` in exactly one group, gravest first. What the judge leaves out makes a group of its own.
    If there is no answer, every failure stands alone, at severity ``high`` unless its metric declares another.

    Of more than :data:`~pandaeval_collector.store.failures.question.MOST` failures the judge is asked about the first
    with texts of their own; others join the group of the one with the same text, else that of their label.
    """
    if not failures:
        return ()
    shown = _shown(failures)
    try:
        verdict = await ask(shown)
    except Exception as error:  # noqa: BLE001 - whatever keeps the judge from answering, the failures are told
        _log.warning("failures could not be grouped and stand alone: %s", error)
        return worst_first(alone(failure) for failure in failures)
    return assigned(failures, shown, verdict)


def _shown(failures: Sequence[Failure]) -> list[Failure]:
    """The first failure of each text, as many as one question holds."""
    texts = {failure.text: failure for failure in reversed(failures)}
    kept = {id(failure) for failure in texts.values()}
    return [failure for failure in failures if id(failure) in kept][:MOST]


def assigned(
    failures: Sequence[Failure], shown: Sequence[Failure], verdict: ErrorDeduplication
) -> tuple[RootCause, ...]:
    """The groups of a verdict on ``shown``, with every one of the ``failures`` in one of them."""
    of_text: dict[str, int] = {}
    for index, group in enumerate(verdict.groups):
        for number in group.failures:
            of_text.setdefault(shown[number - 1].text, index)
    members: dict[int, list[Failure]] = {}
    left: list[Failure] = []
    asked = {failure.text for failure in shown}
    for failure in failures:
        if failure.text in of_text:
            members.setdefault(of_text[failure.text], []).append(failure)
        else:
            left.append(failure)
    found = [_group(verdict.groups[index], held) for index, held in members.items()]
    for text in dict.fromkeys(failure.text for failure in left if failure.text in asked):
        first, *others = (failure for failure in left if failure.text == text)
        found.append(replace(alone(first), members=(first, *others)))
    return worst_first([*found, *by_label(failure for failure in left if failure.text not in asked)])


def _group(named: GroupedErrors, members: Sequence[Failure]) -> RootCause:
    """Never less grave than what a metric declares of one of its failures."""
    declared = [member.severity for member in members if member.severity is not None]
    severity = max((named.severity, *declared), key=SEVERITIES.index)
    return RootCause(named.title, named.description, severity, tuple(members))

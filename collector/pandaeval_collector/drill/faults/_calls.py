"""Which call of a run a fault is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from pandaeval_collector.analysis.rules._verbs import Nature, nature
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import ToolCall

_DONE = re.compile(
    r"\b(?:done|success(?:ful(?:ly)?)?|completed|confirmed|(?:has|have) been|(?:is|are) now|was|were|booked|cancell?ed"
    r"|updated|changed|processed|refunded|sent|created|deleted|added)\b",
    re.IGNORECASE,
)


def chosen(subject: Subject, rng: Random, what: str, fits: Callable[[ToolCall], bool]) -> int:
    """The index of one of the calls that fit. Raises :class:`NotApplicableError` with ``what`` is missing."""
    found = [index for index, call in enumerate(subject.trace.tool_calls) if fits(call)]
    if not found:
        raise NotApplicableError(f"the run has no {what}")
    return rng.choice(found)


def changes(subject: Subject) -> Callable[[ToolCall], bool]:
    """Whether a call changes something: by its tool's hints, else by its name."""
    hints = {tool.name: tool.read_only for tool in subject.trace.tools}
    return lambda call: nature(call.name, hints.get(call.name)) is Nature.CHANGING


def last_change(subject: Subject) -> int:
    """The last call, which changed something that the answer says is done. Raises :class:`NotApplicableError`."""
    calls = subject.trace.tool_calls
    if not calls or not changes(subject)(calls[-1]) or calls[-1].error:
        raise NotApplicableError("the run's last call changes nothing")
    if not _DONE.search(subject.answer):
        raise NotApplicableError("the answer does not say that something was done")
    return len(calls) - 1


def with_arguments(call: ToolCall) -> bool:
    """Whether the call's arguments were captured as an object that is not empty."""
    return isinstance(call.arguments, dict) and bool(call.arguments)

"""What code knows about a run limits what a judge may say of it: a judge reads words, and words can be wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.metrics.trace._facts import crashed
from pandaeval_collector.rules._failures import failed
from pandaeval_collector.rules.tool_loop import tool_loop
from pandaeval_collector.score import Score
from pandaeval_otel.model import ToolCall, Trace

LEFT_UNDONE = 0.49
"""Below half: the user was left with nothing, or with an action that was not carried out."""
NOT_KNOWN = 0.74
"""In part at most: what was to be found out was not."""

_ACTS = frozenset(
    """
    accept activate add apply approve assign book buy cancel change charge close confirm create deactivate delete deploy
    disable edit enable exchange grant insert issue merge modify move open order pay post publish purchase put refund
    register reject remove rename renew replace reserve reset return revoke save schedule send set submit transfer
    update upgrade upload upsert write
    """.split()  # noqa: SIM905 - a list of words to be read
)
"""First words of tools that are there to change something. A name that says nothing is not taken for an action here:
what it failed to do may as well have been found out elsewhere."""
_SEGMENT = re.compile(r"__|[./:]")
_FIRST_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True, slots=True)
class Limit:
    """The best score that the facts allow. ``by`` is for programs, ``reason`` for people; ``calls``: their 1-based
    positions."""

    best: float
    by: str
    reason: str
    calls: tuple[int, ...] = ()

    def applied(self, value: float, reason: str, metadata: Mapping[str, Any]) -> Score:
        """The judge's score, or the limit where it is lower; then reason and metadata say so."""
        if value <= self.best:
            return Score(value, reason, metadata)
        return Score(
            self.best,
            f"capped at {self.best:.4g}: {self.reason}. {reason}",
            {**metadata, "capped_by": self.by, "judged": value},
        )


NO_LIMIT = Limit(1.0, "", "")


def completion_limit(trace: Trace) -> Limit:
    """How far a task can have been accomplished.

    A run that ended with an error and gave no answer, and a call that was to change something, failed, and was followed
    by no success of the same tool or of another one that changes something: below half. A run whose last calls all
    failed: in part at most.
    """
    if crashed(trace):
        return Limit(LEFT_UNDONE, "error_without_answer", "the run ended with an error and gave no answer")
    calls = trace.tool_calls
    lost = tuple(index for index in range(len(calls)) if failed(calls[index]) and not _made_good(trace, index))
    undone = tuple(index + 1 for index in lost if _acts(trace, calls[index]))
    if undone:
        return Limit(LEFT_UNDONE, "failed_action", f"{_named(undone)} failed, and nothing made up for it", undone)
    if lost:
        numbers = tuple(index + 1 for index in lost)
        return Limit(NOT_KNOWN, "failed_call", f"{_named(numbers)} failed, and no later call succeeded", numbers)
    return NO_LIMIT


def efficiency_limit(trace: Trace) -> Limit:
    """How efficient a run can have been: the share of its calls that did not repeat another one in vain."""
    found = tool_loop(trace)
    if not found.wasted_calls:
        return NO_LIMIT
    numbers = tuple(index + 1 for index in found.repeated)
    return Limit(
        1.0 - found.wasted_calls / found.calls,
        "repeated_calls",
        f"{found.wasted_calls} of {found.calls} calls repeated another one in vain",
        numbers,
    )


def _made_good(trace: Trace, index: int) -> bool:
    lost, acted = trace.tool_calls[index], _acts(trace, trace.tool_calls[index])
    later = (call for call in trace.tool_calls[index + 1 :] if not failed(call))
    return any(call.name == lost.name or not acted or _acts(trace, call) for call in later)


def _acts(trace: Trace, call: ToolCall) -> bool:
    """Whether the call was to change something, as far as its definition or its name says so."""
    read_only = next((tool.read_only for tool in trace.tools if tool.name == call.name), None)
    if read_only is not None:
        return not read_only
    verb = _FIRST_WORD.search(_SEGMENT.split(call.name)[-1])
    return verb is not None and verb[0].casefold() in _ACTS


def _named(numbers: tuple[int, ...]) -> str:
    listed = ", ".join(str(number) for number in numbers[:10])
    return f"call {listed}" if len(numbers) == 1 else f"calls {listed}"

"""Faults of the family ``claim``: the answer says what the run does not bear out."""

from __future__ import annotations

from random import Random
from typing import Any

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_lab.drill.edits import ArgumentsEdit, CustomEdit, ToolResultEdit, without_call
from pandaeval_lab.drill.fault import Subject, family
from pandaeval_lab.drill.faults._places import (
    changes,
    chosen,
    chosen_argument,
    last_change,
    scrambled,
    told_alone,
    unknown,
)
from pandaeval_lab.drill.raw import rewritten
from pandaeval_otel.model import ToolCall

_ERRORS = (
    "Error: the request could not be processed (HTTP 500)",
    "Error: permission denied",
    "Error: the service is not available, nothing was changed",
)

_DENIALS = (
    "User rejected the tool call for `it`",
    "Error: Tool call invocation was rejected by user.",
    "The user denied this operation.",
    "Tool execution was not approved.",
    "The tool call was denied.",
)


def claim_without_call(subject: Subject, rng: Random) -> CustomEdit:
    """The answer says that something was done, and the call was never made."""
    return without_call(subject.trace, last_change(subject))


def contradicted_argument(subject: Subject, rng: Random) -> ArgumentsEdit:
    """The answer names a value other than the changing call was made with."""
    answer, changing = subject.answer, changes(subject)

    def fits(call: ToolCall, key: str) -> bool:
        held = call.arguments[key]
        named = isinstance(held, str | int) and any(map(str.isdigit, as_text(held))) and as_text(held) in answer
        return named and changing(call)

    index, call, key = chosen_argument(subject, rng, "changing call with a value that the answer names", fits)
    old = call.arguments[key]
    new = unknown(subject, rng, as_text(old), scrambled)
    made = {**call.arguments, key: new if isinstance(old, str) else int(new)}
    return ArgumentsEdit(index, made, f"{call.name} was called with {key} {new}, the answer has {old}")


def dropped_result(subject: Subject, rng: Random) -> ToolResultEdit:
    """The answer names a value where the only result that held it says another."""
    what = "result that alone holds a value of the answer"
    index = chosen(subject, rng, what, lambda call: bool(told_alone(subject, call)))
    old = rng.choice(told_alone(subject, subject.trace.tool_calls[index]))
    new = unknown(subject, rng, old, scrambled)

    def other(held: Any) -> Any:
        if type(held) in (int, float):
            return type(held)(new) if str(held) == old else held
        return held.replace(old, new) if isinstance(held, str) and old in held else held

    result = rewritten(subject.trace.tool_calls[index].result, other)
    return ToolResultEdit(index, result, f"the result has {new}, the answer {old}")


def false_success(subject: Subject, rng: Random) -> ToolResultEdit:
    """The last change failed, and the answer says that it was done."""
    return _without_effect(subject, "failed", rng.choice(_ERRORS))


def success_after_refusal(subject: Subject, rng: Random) -> ToolResultEdit:
    """A person declined the last change, and the answer claims that it was done."""
    return _without_effect(subject, "was declined", rng.choice(_DENIALS))


def _without_effect(subject: Subject, what: str, result: str) -> ToolResultEdit:
    index = last_change(subject)
    return ToolResultEdit(index, result, f"{subject.trace.tool_calls[index].name} {what}: {result}", failed=True)


FAULTS = family(
    "claim", claim_without_call, contradicted_argument, dropped_result, false_success, success_after_refusal
)

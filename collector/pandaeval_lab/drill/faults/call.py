"""Faults of the family ``call``: a call of a tool is wrong."""

from __future__ import annotations

from random import Random

from pandaeval_lab.drill.edits import ArgumentsEdit, CustomEdit, repeated
from pandaeval_lab.drill.fault import Subject, family
from pandaeval_lab.drill.faults._places import (
    changes,
    chosen,
    chosen_argument,
    scrambled,
    unknown,
    with_arguments,
)
from pandaeval_otel.model import ToolCall

_MADE_UP = ("override_policy", "priority_level", "internal_mode", "skip_checks")


def invented_argument(subject: Subject, rng: Random) -> ArgumentsEdit:
    """A call has an argument that its tool does not know."""
    known = {tool.name for tool in subject.trace.tools if isinstance(tool.parameters, dict)}
    what = "call of a tool whose arguments are defined"
    index = chosen(subject, rng, what, lambda call: with_arguments(call) and call.name in known)
    call, key = subject.trace.tool_calls[index], rng.choice(_MADE_UP)
    return ArgumentsEdit(index, {**call.arguments, key: True}, f"{call.name} with {key}")


def missing_argument(subject: Subject, rng: Random) -> ArgumentsEdit:
    """A call lacks an argument that its tool requires."""
    schemas = {tool.name: tool.parameters for tool in subject.trace.tools if isinstance(tool.parameters, dict)}

    def fits(call: ToolCall, key: str) -> bool:
        return len(call.arguments) > 1 and key in (schemas.get(call.name, {}).get("required") or ())

    index, call, key = chosen_argument(subject, rng, "call with a required argument beside others", fits)
    kept = {name: held for name, held in call.arguments.items() if name != key}
    return ArgumentsEdit(index, kept, f"{call.name} without {key}")


def repeated_write(subject: Subject, rng: Random) -> CustomEdit:
    """A call that changes something is made twice."""
    index = chosen(subject, rng, "changing call", changes(subject))
    return repeated(subject.trace, index, 1, f"{subject.trace.tool_calls[index].name} made twice")


def wrong_argument(subject: Subject, rng: Random) -> ArgumentsEdit:
    """A call is made with a value that nobody gave."""

    def fits(call: ToolCall, key: str) -> bool:
        held = call.arguments[key]
        return isinstance(held, str) and 4 <= len(held) <= 60 and any(map(str.isdigit, held))

    index, call, key = chosen_argument(subject, rng, "call with a specific argument", fits)
    new = unknown(subject, rng, call.arguments[key], scrambled)
    return ArgumentsEdit(index, {**call.arguments, key: new}, f"{call.name}: {key} {call.arguments[key]} → {new}")


FAULTS = family("call", invented_argument, missing_argument, repeated_write, wrong_argument)

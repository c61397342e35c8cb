"""The answer names a value other than the call was made with."""

from random import Random

from pandaeval_collector.drill.edits import ArgumentsEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import changes, chosen, with_arguments
from pandaeval_collector.drill.faults._values import scrambled, unknown
from pandaeval_collector.drill.subject import Subject, spelled
from pandaeval_otel.model import ToolCall


def edit(subject: Subject, rng: Random) -> ArgumentsEdit:
    """Makes a changing call with another value where the answer names the one that it was made with."""
    answer, changing = subject.answer, changes(subject)

    def named(call: ToolCall) -> list[str]:
        return [
            key
            for key, held in call.arguments.items()
            if isinstance(held, str | int) and any(map(str.isdigit, spelled(held))) and spelled(held) in answer
        ]

    def fits(call: ToolCall) -> bool:
        return with_arguments(call) and changing(call) and bool(named(call))

    index = chosen(subject, rng, "changing call with a value that the answer names", fits)
    call = subject.trace.tool_calls[index]
    key = rng.choice(named(call))
    old = call.arguments[key]
    new = unknown(subject, rng, spelled(old), scrambled)
    made = {**call.arguments, key: new if isinstance(old, str) else int(new)}
    return ArgumentsEdit(index, made, f"{call.name} was called with {key} {new}, the answer says {old}")


FAULT = Fault("claim", "The answer names a value other than the changing call was made with.", edit)

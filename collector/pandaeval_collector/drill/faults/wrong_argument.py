"""A call is made with a value that nobody gave."""

from random import Random

from pandaeval_collector.drill.edits import ArgumentsEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.faults._values import scrambled, unknown
from pandaeval_collector.drill.subject import Subject
from pandaeval_otel.model import ToolCall


def edit(subject: Subject, rng: Random) -> ArgumentsEdit:
    """Makes up the value of one argument that holds digits."""

    def specific(call: ToolCall) -> list[str]:
        return [
            key
            for key, held in call.arguments.items()
            if isinstance(held, str) and 4 <= len(held) <= 60 and any(map(str.isdigit, held))
        ]

    index = chosen(
        subject, rng, "call with a specific argument", lambda call: with_arguments(call) and bool(specific(call))
    )
    call = subject.trace.tool_calls[index]
    key = rng.choice(specific(call))
    new = unknown(subject, rng, call.arguments[key], scrambled)
    return ArgumentsEdit(index, {**call.arguments, key: new}, f"{call.name}: {key} {call.arguments[key]} → {new}")


FAULT = Fault("call", "A call is made with a value that nobody gave.", edit)

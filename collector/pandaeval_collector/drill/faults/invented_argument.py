"""A call has an argument that its tool does not know."""

from random import Random

from pandaeval_collector.drill.edits import ArgumentsEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.subject import Subject

_MADE_UP = ("override_policy", "priority_level", "internal_mode", "skip_checks")


def edit(subject: Subject, rng: Random) -> ArgumentsEdit:
    known = {tool.name for tool in subject.trace.tools if isinstance(tool.parameters, dict)}
    index = chosen(
        subject,
        rng,
        "call of a tool whose arguments are defined",
        lambda call: with_arguments(call) and call.name in known,
    )
    call, key = subject.trace.tool_calls[index], rng.choice(_MADE_UP)
    return ArgumentsEdit(index, {**call.arguments, key: True}, f"{call.name} with {key}")


FAULT = Fault("call", "A call has an argument that its tool does not know.", edit)

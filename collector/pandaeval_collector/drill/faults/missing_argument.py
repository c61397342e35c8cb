"""A call lacks an argument that its tool requires."""

from random import Random

from pandaeval_collector.drill.edits import ArgumentsEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.subject import Subject
from pandaeval_otel.model import ToolCall


def edit(subject: Subject, rng: Random) -> ArgumentsEdit:
    """Leaves out a required argument; of two arguments or more, so that the call still has some."""
    schemas = {tool.name: tool.parameters for tool in subject.trace.tools if isinstance(tool.parameters, dict)}

    def required(call: ToolCall) -> list[str]:
        return [key for key in schemas.get(call.name, {}).get("required") or () if key in call.arguments]

    def fits(call: ToolCall) -> bool:
        return with_arguments(call) and len(call.arguments) > 1 and bool(required(call))

    index = chosen(subject, rng, "call with a required argument beside others", fits)
    call = subject.trace.tool_calls[index]
    key = rng.choice(required(call))
    kept = {name: held for name, held in call.arguments.items() if name != key}
    return ArgumentsEdit(index, kept, f"{call.name} without {key}")


FAULT = Fault("call", "A call lacks an argument that its tool requires.", edit)

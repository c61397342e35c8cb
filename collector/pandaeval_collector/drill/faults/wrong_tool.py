"""A call goes to another of the tools that the model could choose."""

from random import Random

from pandaeval_collector.drill.edits import ToolNameEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> ToolNameEdit:
    index = chosen(subject, rng, "call", lambda call: bool(call.name))
    old = subject.trace.tool_calls[index].name
    others = [tool.name for tool in subject.trace.tools if tool.name and tool.name != old]
    others = others or sorted({call.name for trace in subject.earlier for call in trace.tool_calls} - {old})
    if not others:
        raise NotApplicableError("no other tool is known")
    new = rng.choice(others)
    return ToolNameEdit(index, new, f"{old} → {new}")


FAULT = Fault("call", "A call goes to another tool of those that the model could choose.", edit)

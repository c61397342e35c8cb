"""A call that changes something is made twice."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit, repeated
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import changes, chosen
from pandaeval_collector.drill.subject import Subject


def edit(subject: Subject, rng: Random) -> CustomEdit:
    index = chosen(subject, rng, "changing call", changes(subject))
    return repeated(subject.trace, [index], 1, f"{subject.trace.tool_calls[index].name} made twice")


FAULT = Fault("call", "A call that changes something is made twice.", edit)

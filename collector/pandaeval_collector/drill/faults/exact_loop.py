"""A call is made again and again."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit, repeated
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.subject import Subject


def edit(subject: Subject, rng: Random) -> CustomEdit:
    index = chosen(subject, rng, "call with arguments", with_arguments)
    rounds = rng.randint(3, 8)
    what = f"{subject.trace.tool_calls[index].name} made {rounds} times with the same arguments and result"
    return repeated(subject.trace, [index], rounds - 1, what)


FAULT = Fault("course", "The same call is made 3 to 8 times, with the same result.", edit)

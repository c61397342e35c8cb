"""The answer says that something was done, and the call that did it was never made."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit, without_call
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import last_change
from pandaeval_collector.drill.subject import Subject


def edit(subject: Subject, rng: Random) -> CustomEdit:
    return without_call(subject.trace, last_change(subject))


FAULT = Fault("claim", "The answer says that something was done, and the call was never made.", edit)

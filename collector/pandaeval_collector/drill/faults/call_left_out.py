"""A call whose result the answer rests on was not made."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit, without_call
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen
from pandaeval_collector.drill.faults._values import specific
from pandaeval_collector.drill.subject import Subject, spelled
from pandaeval_otel.model import ToolCall


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Leaves out a call whose result alone holds a value of the answer."""
    named = specific(subject.answer)

    def needed(call: ToolCall) -> bool:
        own = spelled(call.result)
        elsewhere = subject.known.replace(own, "")
        return any(each in own and each not in elsewhere for each in named)

    return without_call(subject.trace, chosen(subject, rng, "result that the answer alone rests on", needed))


FAULT = Fault("call", "A call that alone told what the answer says was never made.", edit)

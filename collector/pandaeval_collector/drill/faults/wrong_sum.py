"""An amount in the answer that the agent computed is wrong."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import AMOUNT, swapped, unknown
from pandaeval_collector.drill.faults.invented_amount import other_amount
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    """Changes an amount that stands nowhere before the answer, although others do: it is a result of arithmetic."""
    amounts = {*AMOUNT.findall(subject.answer)}
    computed = sorted(each for each in amounts if each.replace(",", "").removesuffix(".00") not in subject.known)
    if not computed or len(amounts) < 2:
        raise NotApplicableError("the answer names no amount that follows from others")
    old = rng.choice(computed)
    new = unknown(subject, rng, old, other_amount)
    return swapped(subject.answer, old, new, f"computed {old} → {new}")


FAULT = Fault("value", "An amount that follows from others was computed wrongly.", edit)

"""A value in the answer is that of an earlier turn."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import AMOUNT, DATE, IDENTIFIER, TIME, swapped
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    """Puts a value that an earlier answer named, and this one does not, in the place of one of its kind."""
    before = "\n".join(trace.output or "" for trace in subject.earlier)
    for pattern in rng.sample((AMOUNT, DATE, IDENTIFIER, TIME), 4):
        here, there = ({*pattern.findall(text)} for text in (subject.answer, before))
        if here and there - here:
            old, new = rng.choice(sorted(here)), rng.choice(sorted(there - here))
            return swapped(subject.answer, old, new, f"{old} → {new}, of an earlier turn")
    raise NotApplicableError("no earlier answer names another value of a kind that this one names")


FAULT = Fault("value", "The answer names a value of an earlier turn instead of this one's.", edit)

"""Two values in the answer stand in each other's place."""

import re
from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import AMOUNT, DATE, IDENTIFIER, TIME
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    """Swaps two values of one kind wherever they stand."""
    for pattern in rng.sample((AMOUNT, DATE, IDENTIFIER, TIME), 4):
        found = sorted({each for each in pattern.findall(subject.answer) if each in subject.known})
        if len(found) > 1:
            return _swapped(subject.answer, *rng.sample(found, 2))
    raise NotApplicableError("the answer names no two values of one kind")


def _swapped(answer: str, one: str, other: str) -> AnswerEdit:
    places = re.compile(rf"(?<!\w)(?:{re.escape(one)}|{re.escape(other)})(?!\w)")
    text = places.sub(lambda place: other if place.group() == one else one, answer)
    return AnswerEdit(text, f"{one} and {other} swapped")


FAULT = Fault("value", "Two values in the answer stand in each other's place.", edit)

"""The answer is that of another run."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    others = [each for each in subject.others if each.strip() and each.strip() != subject.answer.strip()]
    if not others:
        raise NotApplicableError("no other session has an answer")
    text = rng.choice(others)
    return AnswerEdit(text, f"answer of another session: {text[:60]}")


FAULT = Fault("course", "The answer is that of a run of another session.", edit)

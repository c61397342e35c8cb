"""The answer is an earlier one of the session."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    found = [
        trace.output for trace in subject.earlier if (trace.output or "").strip() not in ("", subject.answer.strip())
    ]
    if not found:
        raise NotApplicableError("the session has no other answer before")
    text = rng.choice(found) or ""
    return AnswerEdit(text, f"an earlier answer again: {text[:60]}")


FAULT = Fault("course", "The answer is an earlier one of the session, word for word.", edit)

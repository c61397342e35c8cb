"""The answer is shouted at the user: every letter is a capital."""

from __future__ import annotations

from random import Random

from pandaeval_lab import AnswerEdit, Fault, NotApplicableError, Subject


def _edit(subject: Subject, rng: Random) -> AnswerEdit:
    if subject.answer.isupper():
        raise NotApplicableError("the answer is in capitals already")
    return AnswerEdit(subject.answer.upper(), "in capitals")


FAULT = Fault("course", "The answer is in capitals.", _edit)

"""The answer breaks off."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    words = subject.answer.split(" ")
    if len(words) < 8:
        raise NotApplicableError("the answer is too short to break off")
    kept = words[: rng.randint(len(words) // 3, len(words) // 2)]
    text = " ".join(kept).rstrip(" .!?:;,")
    return AnswerEdit(text, f"broken off after {len(kept)} of {len(words)} words")


FAULT = Fault("course", "The answer breaks off in the middle.", edit)

"""The run ends with an empty answer."""

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault

FAULT = Fault(
    "course",
    "The run ends with an empty answer.",
    lambda subject, rng: AnswerEdit(subject.answer[:0], "answer emptied"),
)

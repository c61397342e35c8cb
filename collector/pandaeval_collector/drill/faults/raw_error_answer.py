"""The answer is a raw error."""

from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import Subject

_ERRORS = (
    "Traceback (most recent call last):\n"
    '  File "/app/agent.py", line 88, in run\n'
    "    reply = result['text']\n"
    "KeyError: 'text'",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for requests', 'type': 'requests'}}",
    "TypeError: Cannot read properties of undefined (reading 'content')",
    "Agent stopped due to max iterations.",
)


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    text = rng.choice(_ERRORS) if subject.answer else ""
    return AnswerEdit(text, text.splitlines()[-1])


FAULT = Fault("course", "The user gets a raw error as answer.", edit)

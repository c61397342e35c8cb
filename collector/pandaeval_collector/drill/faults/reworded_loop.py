"""A call is made again and again in other words."""

from random import Random
from typing import Any

from pandaeval_collector.drill.edits import CustomEdit, repeated
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.subject import Subject
from pandaeval_otel.model import ToolCall

_WORDS = ("please", "now", "again", "details", "full", "all", "info")


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Repeats a call whose text argument gains a word each time; its result stays."""

    def worded(call: ToolCall) -> list[str]:
        return [key for key, held in call.arguments.items() if isinstance(held, str) and " " in held.strip()]

    index = chosen(
        subject, rng, "call with words as argument", lambda call: with_arguments(call) and bool(worded(call))
    )
    call = subject.trace.tool_calls[index]
    key, rounds = rng.choice(worded(call)), rng.randint(3, 8)

    def reword(arguments: dict[str, Any], number: int) -> dict[str, Any]:
        return {**arguments, key: f"{arguments[key]} {_WORDS[number - 1]}"}

    return repeated(subject.trace, [index], rounds - 1, f"{call.name} made {rounds} times in other words", reword)


FAULT = Fault("course", "The same call is made 3 to 8 times in other words, with the same result.", edit)

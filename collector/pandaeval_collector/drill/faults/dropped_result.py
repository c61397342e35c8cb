"""A result says otherwise than the answer."""

from random import Random
from typing import Any

from pandaeval_collector.drill.edits import ToolResultEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen
from pandaeval_collector.drill.faults._values import scrambled, specific, unknown
from pandaeval_collector.drill.raw import rewritten
from pandaeval_collector.drill.subject import Subject, spelled
from pandaeval_otel.model import ToolCall


def edit(subject: Subject, rng: Random) -> ToolResultEdit:
    """Changes a value in the one result that holds it: the answer names what no result says."""
    named = specific(subject.answer)

    def told(call: ToolCall) -> list[str]:
        own = spelled(call.result)
        elsewhere = subject.known.replace(own, "")
        return sorted(each for each in named if each in own and each not in elsewhere)

    index = chosen(subject, rng, "result that alone holds a value of the answer", lambda call: bool(told(call)))
    old = rng.choice(told(subject.trace.tool_calls[index]))
    new = unknown(subject, rng, old, scrambled)
    result = rewritten(
        subject.trace.tool_calls[index].result,
        lambda held: held.replace(old, new) if isinstance(held, str) and old in held else _number(held, old, new),
    )
    return ToolResultEdit(index, result, f"the result says {new}, the answer {old}")


def _number(held: Any, old: str, new: str) -> Any:
    is_it = type(held) in (int, float) and str(held) == old
    return type(held)(new) if is_it else held


FAULT = Fault("claim", "The answer names a value where the only result that held it says another.", edit)

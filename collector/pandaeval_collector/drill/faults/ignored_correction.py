"""A call is made with a value that the user had contradicted."""

import re
from random import Random

from pandaeval_collector.drill.edits import CustomEdit, text_change
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import chosen, with_arguments
from pandaeval_collector.drill.faults._values import scrambled, unknown
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import ToolCall, Trace

_CODE = re.compile(r"(?!\d{4}-\d\d-\d\d)(?=[\w#-]*\d)[\w#-]{4,40}")
_LEAST_WORDS = 3
"""A shorter message stands elsewhere by chance, in the history or as a value."""


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Has the user correct, in the last message before a call, a value that the call is made with all the same."""
    last = subject.trace.turns[-1] if subject.trace.turns else None
    said = last.user if last is not None else None
    if last is None or said is None or len(said.split()) < _LEAST_WORDS:
        raise NotApplicableError("the user's last message was not captured, or is too short to be told from others")

    def used(call: ToolCall) -> list[str]:
        return [held for held in call.arguments.values() if isinstance(held, str) and _CODE.fullmatch(held)]

    def fits(call: ToolCall) -> bool:
        return with_arguments(call) and call.start_ns >= last.start_ns and bool(used(call))

    call = subject.trace.tool_calls[
        chosen(subject, rng, "call with a number or code as argument in its last turn", fits)
    ]
    old = rng.choice(used(call))
    new = unknown(subject, rng, old, scrambled)
    corrected = f"{said}\nAnd one correction: it is not {old}. It is {new}."
    return _told(said, corrected, f"{call.name} was called with {old}, the user said: not {old}, it is {new}")


def _told(said: str, corrected: str, what: str) -> CustomEdit:
    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(text_change(said, corrected))

    def test(before: Trace, after: Trace) -> bool:
        same = [call.arguments for call in after.tool_calls] == [call.arguments for call in before.tool_calls]
        heard = [turn.user for turn in after.turns] == [*(turn.user for turn in before.turns[:-1]), corrected]
        return same and heard and after.output == before.output

    return CustomEdit(change, test, what)


FAULT = Fault("call", "A call is made with a value that the user had just corrected.", edit)

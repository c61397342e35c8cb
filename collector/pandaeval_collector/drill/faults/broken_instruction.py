"""The run breaks an instruction of its system prompt."""

from collections.abc import Iterator
from random import Random

from pandaeval_collector.drill.edits import CustomEdit, text_change
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import AMOUNT, DATE
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import Trace

_FEW = 5


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Adds a rule to the instructions that the run, as it went, does not keep."""
    systems = {span.system for span in subject.trace.spans if span.system}
    if not systems:
        raise NotApplicableError("the agent's instructions were not captured")
    rule = rng.choice([*_broken(subject)])

    def change(raw: RawTrace, before: Trace) -> None:
        for each in sorted(systems, key=len, reverse=True):
            raw.rewrite(text_change(each, f"{each}\n\n{rule}"))

    def test(before: Trace, after: Trace) -> bool:
        told = [span.system for span in after.spans if span.system]
        return all(each.endswith(rule) and each.count(rule) == 1 for each in told) and _done(after) == _done(before)

    return CustomEdit(change, test, f"the instructions say: {rule}")


def _broken(subject: Subject) -> Iterator[str]:
    """Rules that the run breaks."""
    answer = subject.answer
    yield 'Begin every answer with the words "Service desk, case noted:".'
    yield "Answer in Icelandic only, whichever language the user writes."
    if len(answer.split()) > _FEW:
        yield f"Never use more than {_FEW} words in an answer."
    if AMOUNT.search(answer):
        yield "Never name an amount of money in an answer."
    if DATE.search(answer):
        yield "Never name a date in an answer."
    for name in sorted({call.name for call in subject.trace.tool_calls}):
        yield f"Never call the tool {name}: it is out of order."


def _done(trace: Trace) -> tuple[object, ...]:
    return trace.output, *(call.name for call in trace.tool_calls)


FAULT = Fault("course", "The run breaks an instruction of its system prompt.", edit)

"""Two calls are made in the wrong order."""

from collections.abc import Iterator
from random import Random
from typing import Any

from pandaeval_collector.drill.edits import CustomEdit, ToolNameEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._calls import with_arguments
from pandaeval_collector.drill.faults._values import specific
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject, spelled
from pandaeval_otel.model import ToolCall, Trace


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Swaps a call and a later one that was made with what only the first one's result told."""
    calls = subject.trace.tool_calls
    pairs = [
        (first, then)
        for first, told in enumerate(calls)
        for then in range(first + 1, len(calls))
        if _differ(told, calls[then]) and _rests_on(subject, first, then)
    ]
    if not pairs:
        raise NotApplicableError("no call is made with what only an earlier call's result told")
    first, then = rng.choice(pairs)
    return _swapped(subject.trace, first, then)


def _differ(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls can be told from each other wherever messages speak of them."""
    apart = one.name != other.name and spelled(one.result) != spelled(other.result)
    return apart and with_arguments(one) and with_arguments(other) and one.has_result and other.has_result


def _rests_on(subject: Subject, first: int, then: int) -> bool:
    calls = subject.trace.tool_calls
    told = spelled(calls[first].result)
    before = "\n".join(_said(subject, first))
    return any(each in told and each not in before for each in specific(spelled(calls[then].arguments)))


def _said(subject: Subject, first: int) -> Iterator[str]:
    """What stood in the session before a call: all that users and instructions say, and what earlier calls told."""
    for trace in (*subject.earlier, subject.trace):
        yield trace.input or ""
        for span in trace.spans:
            yield span.system or ""
            yield from (message.text for message in span.input or () if message.role in ("user", "system", "developer"))
    for call in (*(each for trace in subject.earlier for each in trace.tool_calls), *subject.trace.tool_calls[:first]):
        yield f"{spelled(call.arguments)}\n{spelled(call.result)}"
    yield from (trace.output or "" for trace in subject.earlier)


def _swapped(trace: Trace, first: int, then: int) -> CustomEdit:
    """Each call keeps its place and its id, and gets the other's name, arguments and result."""
    one, other = trace.tool_calls[first], trace.tool_calls[then]
    what = f"{other.name} is made before {one.name}"

    def exchange(held: Any) -> Any:
        for mine, theirs in ((one, other), (other, one)):
            for old, new in ((mine.arguments, theirs.arguments), (mine.result, theirs.result)):
                if type(held) is type(old) and held == old:
                    return new
        return held

    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(exchange)
        ToolNameEdit(first, other.name, what).write(raw, before)
        ToolNameEdit(then, one.name, what).write(raw, before)

    def test(before: Trace, after: Trace) -> bool:
        wanted = [*map(_facts, before.tool_calls)]
        wanted[first], wanted[then] = wanted[then], wanted[first]
        return [*map(_facts, after.tool_calls)] == wanted and after.output == before.output

    return CustomEdit(change, test, what)


def _facts(call: ToolCall) -> tuple[Any, ...]:
    return call.name, call.arguments, call.result


FAULT = Fault("call", "Two calls are swapped: one uses what only the other's result tells later.", edit)

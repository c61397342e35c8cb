"""Code that fails is run again and again, edited where nothing depends on it."""

from __future__ import annotations

import re
from random import Random
from typing import Any

from pandaeval_collector.analysis.rules._code_runs import code_runs, observed, written
from pandaeval_collector.drill.edits import CustomEdit, text_change
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import Kind, Span, Trace

_ASSIGNED = re.compile(r"^[ \t]*([A-Za-z_]\w*)[ \t]*=(?!=)", re.MULTILINE)
_ERROR = (
    "Error:\nCode execution failed at line '{line}' due to: ConnectionError: the service did not answer\n"
    "Now let's retry: take care not to repeat previous errors!"
)


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Has a model write its code 3 to 6 times, each time with another message and names of its own; all but the last
    fail alike."""
    steps = [step for span in subject.trace.spans if (step := _step(span)) is not None]
    if not steps:
        raise NotApplicableError("no model wrote code after it had observed what other code did")
    span, code, seen = rng.choice(steps)
    times = rng.randint(3, 6)
    error = _ERROR.format(line=code.strip().splitlines()[0])

    def again(number: int, held: Any) -> Any:
        made = text_change(seen, error)(held)
        return made if number == times else text_change(code, _edited(code, number))(made)

    def change(raw: RawTrace, trace: Trace) -> None:
        raw.repeat({span.span_id}, times, again)
        raw.rewrite(text_change(code, _edited(code, 0)), only={span.span_id})

    def test(before: Trace, after: Trace) -> bool:
        runs = code_runs(after)
        failed = sum(run.result.startswith("Error:") and error in run.result for run in runs)
        return failed == times and after.output == before.output

    return CustomEdit(change, test, f"code run {times} times with the same error")


def _step(span: Span) -> tuple[Span, str, str] | None:
    """A model call that writes code, with the code and what the model had observed before."""
    if span.kind is not Kind.LLM or not span.output or not span.input:
        return None
    code, seen = written(span.output), observed(span.input)
    return (span, code[0], seen) if code and code[0].strip() and seen else None


def _edited(code: str, number: int) -> str:
    name = _ASSIGNED.search(code)
    renamed = re.sub(rf"(?<!['\"])\b{name[1]}\b(?!['\"])", f"{name[1]}_{number}", code) if name and number else code
    return f'print("attempt {number + 1}")\n{renamed}'


FAULT = Fault("course", "Code that fails is run 3 to 6 times, edited where nothing depends on it.", edit)

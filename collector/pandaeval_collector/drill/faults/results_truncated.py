"""Results of tools are cut to some characters."""

from typing import Any

from pandaeval_collector.drill.edits import CustomEdit, text_change
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject, spelled
from pandaeval_otel.model import Trace

_KEPT = 40


def edit(subject: Subject) -> CustomEdit:
    results = [
        call.result for call in subject.trace.tool_calls if call.has_result and len(spelled(call.result)) > 2 * _KEPT
    ]
    if not results:
        raise NotApplicableError("no result is long enough to be cut")
    changes = [text_change(each, _cut(each)) for each in results if isinstance(each, str)]

    def cut(held: Any) -> Any:
        if isinstance(held, dict | list):
            return _cut(held) if held in results else held
        for change in changes:
            held = change(held)
        return held

    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(cut)

    def test(before: Trace, after: Trace) -> bool:
        return all(len(spelled(call.result)) <= 2 * _KEPT for call in after.tool_calls)

    return CustomEdit(change, test, f"results cut to {_KEPT} characters")


def _cut(result: Any) -> str:
    return f"{spelled(result)[:_KEPT]}..."


FAULT = Fault("telemetry", "Results of tools are cut to some characters.", lambda subject, rng: edit(subject))

"""All calls have one id."""

from typing import Any

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject) -> CustomEdit:
    ids = {call.id for call in subject.trace.tool_calls if call.id}
    if len(ids) < 2:
        raise NotApplicableError("the run has no two calls with ids")
    one = min(ids)

    def same(held: Any) -> Any:
        return one if isinstance(held, str) and held in ids and held != one else held

    return CustomEdit(
        lambda raw, before: raw.rewrite(same),
        lambda before, after: {call.id for call in after.tool_calls} == {one},
        f"all calls have the id {one}",
    )


FAULT = Fault("telemetry", "All calls of a run have one id.", lambda subject, rng: edit(subject))

"""The agent's instructions are not captured."""

from typing import Any

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.raw import RawTrace, rewritten
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import Trace


def edit(subject: Subject) -> CustomEdit:
    systems = {span.system for span in subject.trace.spans if span.system}
    if not systems:
        raise NotApplicableError("the agent's instructions were not captured")

    def told(held: Any) -> bool:
        return isinstance(held, str) and any(system in held or held == system for system in systems)

    def spoken(held: Any) -> Any:
        """A list of messages without those of the system."""
        if not isinstance(held, list) or not all(isinstance(each, dict) and "role" in each for each in held):
            return held
        kept = [each for each in held if each["role"] not in ("system", "developer")]
        return kept if len(kept) < len(held) else held

    def change(raw: RawTrace, before: Trace) -> None:
        raw.rewrite(spoken)
        raw.strip(lambda held: rewritten(held, lambda each: None if told(each) else each) is not held)

    return CustomEdit(
        change,
        lambda before, after: not any(span.system for span in after.spans) and after.output == before.output,
        "the instructions are not captured",
    )


FAULT = Fault("telemetry", "The agent's instructions are not captured.", lambda subject, rng: edit(subject))

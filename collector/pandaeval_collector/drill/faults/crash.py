"""The run ends in an error, without an answer."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.raw import RawTrace, rewritten
from pandaeval_collector.drill.subject import Subject
from pandaeval_otel.model import Trace


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Takes the answer out of the spans, and ends the last spans that are open in an error."""
    answer, error = (
        subject.answer,
        rng.choice(("ConnectionError: reset by peer", "TimeoutError: the model did not answer")),
    )

    def change(raw: RawTrace, trace: Trace) -> None:
        raw.strip(lambda held: rewritten(held, lambda each: None if _is(each, answer) else each) is not held)
        end = max(span.end_time_unix_nano for span in raw.spans())
        for span in raw.spans():
            if span.span_id.hex() in raw.touched or span.end_time_unix_nano == end:
                span.status.code = 2  # type: ignore[assignment]
                span.status.message = error
                raw.touched.add(span.span_id.hex())

    return CustomEdit(change, lambda before, after: after.error is not None and not after.output, error)


def _is(held: object, answer: str) -> bool:
    return isinstance(held, str) and answer in held


FAULT = Fault("course", "The run ends in an error, without an answer.", edit)

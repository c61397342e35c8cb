"""Some spans never arrive."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_otel.model import Kind


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Loses half of the spans of tools and models, one at least."""
    spans = [span.span_id for span in subject.trace.spans if span.kind in (Kind.TOOL, Kind.LLM) and span.parent_id]
    if not spans:
        raise NotApplicableError("the run has no span below another")
    lost = {*rng.sample(spans, max(1, len(spans) // 2))}
    return CustomEdit(
        lambda raw, before: raw.drop(lost),
        lambda before, after: not lost & {span.span_id for span in after.spans},
        f"{len(lost)} of {len(subject.trace.spans)} spans lost",
    )


FAULT = Fault("telemetry", "Some spans of tools and models never arrive.", edit)

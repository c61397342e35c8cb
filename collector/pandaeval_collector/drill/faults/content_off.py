"""The instrumentation captures no content."""

from pandaeval_collector.drill.edits import CustomEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.raw import RawTrace, as_json
from pandaeval_collector.drill.subject import NotApplicableError, Subject, spelled
from pandaeval_otel.model import Trace

_LEAST = 3


def edit(subject: Subject) -> CustomEdit:
    """Removes every attribute in which a text of the run stands: what was said, arguments and results."""
    trace = subject.trace
    if trace.input is None and trace.output is None:
        raise NotApplicableError("no content was captured")
    texts = [message.text for span in trace.spans for message in (*(span.input or ()), *(span.output or ()))]
    texts += [span.system or "" for span in trace.spans]
    texts += [spelled(held) for call in trace.tool_calls for held in (call.arguments, call.result)]
    texts = [text for text in {*texts} if len(text) > _LEAST]

    def is_content(held: object) -> bool:
        text = spelled(held)
        return as_json(text) is not None or (len(text) > _LEAST and any(text in each or each in text for each in texts))

    def change(raw: RawTrace, before: Trace) -> None:
        raw.strip(lambda held: isinstance(held, str | list | dict) and is_content(held))

    def test(before: Trace, after: Trace) -> bool:
        said = after.input is not None or after.output is not None
        return not said and not any(call.has_result or call.has_arguments for call in after.tool_calls)

    return CustomEdit(change, test, "no content captured")


FAULT = Fault("telemetry", "The instrumentation captures no content.", lambda subject, rng: edit(subject))

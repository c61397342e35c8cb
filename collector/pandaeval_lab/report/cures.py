"""What to do about results of a trace that could not be scored."""

from __future__ import annotations

from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.pipeline.line.hints import cure as capture_cure
from pandaeval_collector.show.report.cures import CURES
from pandaeval_otel.model import Kind, Trace

_NO_ANSWER = "Nothing to switch on: the run gave no answer that could be scored. Look at where it ended."
_TOOL_CALL = (
    "Nothing to switch on: the recording stops at a tool call. If the agent went on after it, its spans have "
    "to come in the same trace."
)
_NO_CONTENT = "Nothing to switch on: what was captured holds no words to compare."
_PARTS = (
    "Question and answer are there; something else that it reads is not, such as arguments and results of calls. The "
    "reason says what: switch its capture on."
)


def cure(why: str, trace_cure: str, reads_more: bool) -> str:
    """Returns what to do about results with this ``why``. ``trace_cure``: what :func:`no_content_cure` says of the
    trace; ``reads_more``: the metric needs more of a trace than question and answer."""
    if why == "no_content":
        return trace_cure if trace_cure and (reads_more or trace_cure != _PARTS) else _NO_CONTENT
    return CURES.get(why, "")


def no_content_cure(trace: Trace) -> str:
    """Returns what to do about this trace if it has no content to score."""
    if trace.ends_in_tool_call:
        return _TOOL_CALL
    if trace.error is not None and trace.output is None and trace.input is not None:
        return _NO_ANSWER
    if trace.input is not None and trace.output is not None:
        return _PARTS if says_something(trace.input) and says_something(trace.output) else _NO_CONTENT
    speaking = (Kind.LLM, Kind.AGENT, Kind.WORKFLOW)  # their instrumentations come first
    scopes = dict.fromkeys(span.scope for span in sorted(trace.spans, key=lambda span: span.kind not in speaking))
    how = capture_cure((*scopes, *trace.dialects))
    if trace.input is None and trace.output is None:
        return f"Content capture is off in service {trace.service!r}: {how}."
    what = "no user input" if trace.input is None else "no answer"
    return f"Service {trace.service!r} captured {what}. If there was one: {how}."

"""Whether something that the agent may have had was not captured."""

from __future__ import annotations

from pandaeval_otel.model import Kind, Span, Trace


def hidden(trace: Trace) -> str | None:
    """What is missing, in words; ``None`` where the trace shows all that the agent had.

    Results count, and the conversation: model calls that show only what was new to them, and a first call in a session
    with neither instructions nor history, which may be the middle of a conversation."""
    if any(not call.has_result and call.error is None for call in trace.tool_calls):
        return "results of tools were not captured"
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    if any(message.hidden for span in models for message in span.input or ()):
        return "messages were captured in part"
    if (trace.input is None and not trace.turns) or any(turn.user is None for turn in trace.turns):
        return "the user's words were not captured"
    goes_on = trace.session_id is not None or bool(trace.continues)
    if not goes_on or not models or _whole(models):
        return None
    return "the conversation before was not captured"


def _whole(models: list[Span]) -> bool:
    """Whether the first call shows instructions or history, as it does where conversations are captured as a whole."""
    if models[0].system:
        return True
    return any(message.role in ("system", "assistant") for message in models[0].input or ())

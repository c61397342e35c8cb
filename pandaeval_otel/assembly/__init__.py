"""When is a trace, when is a session done? Pure, bounded structures; the clock is passed in."""

from pandaeval_otel.assembly.sessions import DueSession, SessionAssembler
from pandaeval_otel.assembly.traces import Added, CloseRules, Decided, DueTrace, TraceAssembler

__all__ = ["Added", "CloseRules", "Decided", "DueSession", "DueTrace", "SessionAssembler", "TraceAssembler"]

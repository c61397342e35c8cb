"""Decides when a trace is complete, with pure, bounded structures; the caller passes the clock.

Imports model, wire.
"""

from pandaeval_otel.assembly.traces import Added, CloseRules, Decided, DueTrace, TraceAssembler

__all__ = ["Added", "CloseRules", "Decided", "DueTrace", "TraceAssembler"]

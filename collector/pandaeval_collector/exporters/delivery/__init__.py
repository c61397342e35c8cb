"""Delivers results to sinks: log events and spans from an outbox, metrics from a table; each exporter has a cursor."""

MEMBERS = "members"
"""The signal of the outbox under which decided traces go to whoever owns their sessions."""

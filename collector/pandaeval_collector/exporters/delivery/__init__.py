"""Delivery to sinks: log events and spans from an outbox, metrics from a table."""

MEMBERS = "members"
"""The outbox signal for decided traces sent to their session's owner."""

"""Delivery to sinks: log events and spans from an outbox, metrics from a table, a cursor per exporter."""

MEMBERS = "members"
"""The outbox signal for decided traces sent to their session's owner."""

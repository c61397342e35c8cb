"""The sinks: one file for each wire format, and the delivery of results to them from the outbox.

Imports base, store.
"""

from pandaeval_collector.exporters._protocol import Exporter, Repeating, RetryLaterError, Row, Sent, Surroundings

__all__ = ["Exporter", "Repeating", "RetryLaterError", "Row", "Sent", "Surroundings"]

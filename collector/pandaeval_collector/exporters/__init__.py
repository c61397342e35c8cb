"""The exporters: each knows results and a wire format, nothing of metrics and traces."""

from pandaeval_collector.exporters._protocol import Exporter, Repeating, RetryLaterError, Row, Sent, Surroundings

__all__ = ["Exporter", "Repeating", "RetryLaterError", "Row", "Sent", "Surroundings"]

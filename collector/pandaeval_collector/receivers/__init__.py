"""The doors: OTLP over gRPC and HTTP, submissions, health, Kafka, files and trace stores; they know wire formats and
status codes, and nothing of traces.

Imports base, store.
"""

from pandaeval_collector.receivers._protocol import (
    Accepted,
    Dense,
    Draining,
    Ingest,
    Malformed,
    Overloaded,
    Refusal,
    Submitted,
    TooLarge,
    TooMany,
)

__all__ = [
    "Accepted",
    "Dense",
    "Draining",
    "Ingest",
    "Malformed",
    "Overloaded",
    "Refusal",
    "Submitted",
    "TooLarge",
    "TooMany",
]

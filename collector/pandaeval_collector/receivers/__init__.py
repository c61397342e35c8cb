"""The listeners: OTLP over gRPC and HTTP, and health. They know wire formats and status codes, nothing of traces."""

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

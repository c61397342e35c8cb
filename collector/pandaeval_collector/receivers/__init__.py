"""The doors: OTLP over gRPC and HTTP, and health. A receiver knows wire formats and status codes, nothing of traces."""

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

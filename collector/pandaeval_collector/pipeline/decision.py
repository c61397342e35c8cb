"""A scoring worker's conclusion, for the main process to commit."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_collector.store import WriteSet


@dataclass(slots=True)
class Decision:
    """Changes for one transaction, and data for the main process."""

    changes: WriteSet = field(default_factory=WriteSet)
    failed: dict[bytes, str] = field(default_factory=dict)
    """Quarantined traces with their kind of error."""
    grown: dict[str, int] = field(default_factory=dict)
    """Sessions whose traces from other collectors are not compared yet. Value: earliest start of the new traces in
    nanoseconds; 0 if unknown or if a trace left."""
    has_runs: bool = False
    """Whether the decision contains agent traces. If so, the sessions in ``changes`` continue."""

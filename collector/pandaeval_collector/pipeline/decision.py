"""What the line concludes, as the front commits it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pandaeval_collector.store import WriteSet


@dataclass(slots=True)
class Decision:
    """The changes to commit as one transaction, and what the front counts and continues with."""

    changes: WriteSet = field(default_factory=WriteSet)
    failed: dict[bytes, str] = field(default_factory=dict)
    """Traces that are set aside, and the kind of error."""
    grown: dict[str, int] = field(default_factory=dict)
    """Sessions that go on with traces which other collectors decided, and are to be compared: from which start on, in
    nanoseconds, traces came into each; 0 where that is not known, or something left it."""
    has_runs: bool = False
    """Whether agents' traces were decided, so that the sessions in ``changes`` go on."""

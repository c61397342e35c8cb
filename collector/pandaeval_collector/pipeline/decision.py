"""What the line concludes, as the front commits it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pandaeval_collector.store import WriteSet


@dataclass(slots=True)
class GrownSession:
    """What came into a session since it was compared: ``start_ns`` of the earliest, and the ``agents`` that said
    something. ``whole``: these are not known, or something left the session."""

    start_ns: int = 0
    agents: frozenset[str] = frozenset()
    whole: bool = False

    def merged(self, other: GrownSession) -> GrownSession:
        """Returns what came into the session by both accounts together."""
        return GrownSession(min(self.start_ns, other.start_ns), self.agents | other.agents, self.whole or other.whole)


@dataclass(slots=True)
class Decision:
    """The changes to commit as one transaction, and what the front counts and continues with."""

    changes: WriteSet = field(default_factory=WriteSet)
    failed: dict[bytes, str] = field(default_factory=dict)
    """Traces that are set aside, and the kind of error."""
    grown: dict[str, GrownSession] = field(default_factory=dict)
    """Sessions that go on with traces which other collectors decided, and are to be compared."""
    has_runs: bool = False
    """Whether agents' traces were decided, so that the sessions in ``changes`` go on."""


Commit = Callable[[Callable[[], Awaitable[Decision]]], Awaitable[None]]
"""Has the line make a decision, and commits it."""

"""What the line concludes from a batch, to be committed as one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.sessions import GrownSession
from pandaeval_collector.pipeline.line.understanding import Run
from pandaeval_collector.store import JobEnd, WriteSet
from pandaeval_otel.model import Trace


@dataclass(slots=True)
class Decision:
    """The outcome of a batch: the changes to commit, and what the caller counts and exports."""

    changes: WriteSet = field(default_factory=WriteSet)
    results: list[Result] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    failed: dict[bytes, str] = field(default_factory=dict)
    """Traces that are set aside, and the kind of error."""
    left_out: int = 0
    """Agents' traces that were not asked for, and are not among the runs."""
    grown: dict[str, GrownSession] = field(default_factory=dict)
    """Sessions that go on with traces which other collectors decided, and are to be compared."""

    @property
    def traces(self) -> list[Trace]:
        """The agents' traces, where they were understood in this process."""
        return [run.trace for run in self.runs if run.trace is not None]

    @property
    def told(self) -> list[tuple[str, str | None, str | None]]:
        """(trace id, session, error with which it ended) of each agent's trace, wherever the trace was understood."""
        return [(run.unit.trace_id, run.unit.session_id, run.error) for run in self.runs]

    @property
    def not_genai(self) -> int:
        """The number of decided traces without an agent."""
        return len(self.changes.traces) - len(self.runs) - len(self.failed) - self.left_out


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a job ended, and the result it gave; ``None`` for one that was cancelled."""

    end: JobEnd
    result: Result | None = None


Commit = Callable[[Callable[[], Decision]], Awaitable[None]]
"""Has a decision made on the line's thread, and commits it."""

"""Operations on failures by root cause."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field

from pandaeval_collector.show.api.names import Names, one_of
from pandaeval_collector.show.api.problems import ProblemError
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.shapes import Milliseconds
from pandaeval_collector.store import FailureGroupRow
from pandaeval_collector.store.failures.failure import at_least, gravity

Severity = Literal["low", "medium", "high", "critical"]
LeastSeverity = Annotated[Severity | None, Query(description="Of this severity or graver.")]
Agent = Annotated[str | None, Query(max_length=500, description="Of this agent.")]
Most = Annotated[int, Query(ge=1, le=1000, description="At most so many groups.")]


class FailureExample(BaseModel):
    """A failure of a group. ``turn``: 0-based index of the turn in its conversation."""

    result: str
    trace_id: str
    span_id: str
    session_id: str | None
    turn: int | None
    reason: str
    at: Milliseconds


class FailureGroup(BaseModel):
    """Failures with one root cause. ``occurrences``: since the group began; ``examples``: the newest, newest first."""

    id: str
    metric: str
    label: str
    title: str
    description: str
    severity: Severity
    tool: str = Field(description="The tool that it is about; empty where it is about none.")
    agent: str
    service: str
    occurrences: int
    first_at: Milliseconds
    last_at: Milliseconds
    page: str | None = Field(description="Where this collector's page shows it; null where there is no page.")
    examples: list[FailureExample] = Field(description="At most 20.")

    @classmethod
    def of(cls, row: FailureGroupRow, has_page: bool) -> Self:
        """Returns a stored group in this form."""
        return cls.model_validate(
            {
                **{name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)},
                "occurrences": row.count,
                "page": f"/#/failures?group={row.id}" if has_page else None,
                "first_at": int(row.first_at * 1000),
                "last_at": int(row.last_at * 1000),
                "examples": [{**each, "at": int(each["at"] * 1000)} for each in reversed(row.examples)],
            }
        )


class FailureGroups(BaseModel):
    """Groups of failures: claims of success that are not true, then the gravest, of those the newest."""

    items: list[FailureGroup]


def failure_routes(app: FastAPI, reads: Reads, names: Names, has_page: bool) -> None:
    """Adds the operations on groups of failures. ``has_page``: whether the collector has a page."""

    @reads.operation(app, "/failures", "Failures by root cause, the gravest first")
    def list_(severity: LeastSeverity = None, agent: Agent = None, limit: Most = 100) -> FailureGroups:
        rows = reads.finder.failure_groups()
        if agent not in {row.agent for row in rows}:
            names.agent(agent)
        rows = [
            row for row in rows if (severity is None or at_least(row.severity, severity)) and agent in (None, row.agent)
        ]
        rows.sort(key=lambda row: gravity([row.label], row.severity))  # of those alike the newest first, as before
        return FailureGroups(items=[FailureGroup.of(row, has_page) for row in rows[:limit]])

    @reads.operation(app, "/failures/{group_id}", "One group of failures", tagged=False)
    def one(group_id: str) -> FailureGroup:
        rows = {row.id: row for row in reads.finder.failure_groups()}
        id_ = group_id if group_id in rows else one_of(group_id, (id_ for id_ in rows if id_.startswith(group_id)))
        if id_ is None:
            raise ProblemError(404, f"there is no group of failures {group_id[:40]}")
        return FailureGroup.of(rows[id_], has_page)

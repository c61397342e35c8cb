"""Files the failures among the results of a decision under their groups, in the transaction that stores the results."""

from __future__ import annotations

from dataclasses import replace

from pandaeval_collector.base.result import Result
from pandaeval_collector.store import FailureGroupRow, WriteSet
from pandaeval_collector.store.failures.failure import Failure, failure_of
from pandaeval_collector.store.failures.live import LiveGroups


def filed(groups: LiveGroups, result: Result, is_new: bool, changes: WriteSet) -> Result:
    """The result with its group, if it is a failure. ``is_new``: it is counted, since no earlier revision was. What a
    judge said before of its group stands in ``failure_group``."""
    failure = failure_of(result) if result.success is False else None
    if failure is None:
        return result
    row = groups.place(failure, result.failure_group)
    if is_new:
        changes.failures.append(_added(row, failure, result))
    return replace(result, failure_group=row.id, failure_severity=row.severity)


def _added(row: FailureGroupRow, failure: Failure, result: Result) -> FailureGroupRow:
    at = result.time.timestamp()
    example = {
        "result": failure.result,
        "trace_id": failure.trace_id,
        "span_id": failure.span_id,
        "session_id": failure.session_id,
        "turn": failure.turn,
        "reason": failure.reason,
        "at": at,
    }
    return replace(row, count=1, first_at=at, last_at=at, examples=(example,))

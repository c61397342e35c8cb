"""Failure groups in the output of ``pandaeval evaluate``: in the tables, among the results, and as a gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import orjson

from pandaeval_collector.cli._gates import GateOutcome
from pandaeval_collector.cli._summary import MOST_FAILURES

if TYPE_CHECKING:
    from pandaeval_collector.base.result import Result
    from pandaeval_collector.store.failures import RootCause

KEY = "failures"


def severity_gate(groups: Sequence[RootCause], least: str | None) -> GateOutcome:
    """Fails where a group is as grave as ``least`` (``gates.fail_on_error_severity``; ``None``: none is)."""
    from pandaeval_collector.store.failures.failure import at_least

    grave = [group for group in groups if least is not None and at_least(group.severity, least)]
    if not grave:
        return GateOutcome(KEY, True)
    many = f"{len(grave)} group{'' if len(grave) == 1 else 's'} of failures"
    text = f"{KEY} (gates.fail_on_error_severity {least}): {many} of that severity or graver"
    return GateOutcome(KEY, False, text, tuple(_example(group) for group in grave[:3]))


def _example(group: RootCause) -> str:
    shown = ", ".join(member.place for member in group.examples)
    return f"[{group.severity}] {group.title} ({group.count} occurrence(s)): {shown}"


class UngroupedFailures:
    """Failures that are written as JSON once their groups are known: as many as are grouped."""

    def __init__(self) -> None:
        self._results: list[Result] = []

    def takes(self, result: Result) -> bool:
        """Whether it is kept for later."""
        if len(self._results) >= MOST_FAILURES:
            return False
        self._results.append(result)
        return True

    def lines(self, groups: Sequence[RootCause]) -> Iterator[bytes]:
        """What was kept, each with its group (``metadata.failure_group``)."""
        of_result = {member.result: group.to_dict() for group in groups for member in group.members}
        for result in self._results:
            held = orjson.loads(result.to_json())
            held["metadata"]["failure_group"] = of_result.get(result.id)
            yield orjson.dumps(held)

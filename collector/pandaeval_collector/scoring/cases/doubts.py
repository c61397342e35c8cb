"""What is allowed in a case file and is hardly meant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandaeval_collector.scoring.cases.graders import declared
from pandaeval_collector.scoring.cases.model import Suite

_MOST = 5


def doubts(suite: Suite) -> Iterator[str]:
    """A sentence for each, with the cure."""
    idle = [case.id for case in suite.cases if not declared(case) and not case.open]
    if idle:
        yield (
            f"{_many(idle)} without anything that a run could fail ({_some(idle)}): no trial is decided before there "
            "is an expectation, such as expected_tools, expected_outcome or expected_answer"
        )
    same: dict[str, list[str]] = {}
    for case in suite.cases:
        if case.task is not None:
            same.setdefault(case.task, []).append(case.id)
    for ids in [ids for ids in same.values() if len(ids) > 1][:_MOST]:
        yield f"{_some(ids)} have the same inputs.task: the spans of a run have to name the case (using_case)"


def _many(ids: Sequence[str]) -> str:
    return "1 case is" if len(ids) == 1 else f"{len(ids)} cases are"


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_MOST]) + (", …" if len(ids) > _MOST else "")

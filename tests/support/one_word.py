"""Checks that an ID determines its result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import patch

from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.line.revisions import Revisions


@contextlib.contextmanager
def one_outcome_per_id() -> Iterator[None]:
    """Fail inside the block if one ID has two outcomes. Judged results are exempt."""
    add = Revisions.add
    outcomes: dict[str, tuple[str, float | None]] = {}

    def checked(revisions: Revisions, results: Sequence[Result], *arguments: Any, **named: Any) -> None:
        for each in results:
            if each.evaluator.kind == "llm":
                continue
            word = each.outcome, each.finding.value if isinstance(each.finding, Score) else None
            known = outcomes.setdefault(each.id, word)
            of = f"{each.unit.level}.{each.metric} of {each.unit.id}"
            assert known == word, f"{of}: {known} and {word} under {each.id}"
        add(revisions, results, *arguments, **named)

    with patch.object(Revisions, "add", checked):
        yield

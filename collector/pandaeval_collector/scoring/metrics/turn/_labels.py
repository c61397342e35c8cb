"""Failures by label: the shape of a judge's answer, which label counts, and the score that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pandaeval_collector.base.score import Score

NO_FAILURE = "no failure"
MOST_LABELS, MOST_CALLS = 4, 20


def wrong(labels: Sequence[str], calls: Sequence[int], reason: str, known: int) -> str | None:
    """What is wrong with an answer: it contradicts itself, or names a call that does not exist. ``known``: how many
    calls there are."""
    if NO_FAILURE in labels and len(set(labels)) > 1:
        return f'labels: "{NO_FAILURE}" stands alone'
    if missing := [number for number in calls if not 1 <= number <= known]:
        return f"calls: there is no call {missing[0]}"
    return None if any(map(str.isalnum, reason)) else "reason: it says nothing"


def labelled(labels: Sequence[str], order: Sequence[str], reason: str, about: dict[str, Any], **more: Any) -> Score:
    """1 for no failure, else 0 with the gravest of the ``labels`` by ``order``; all of them, gravest first, are in the
    metadata."""
    found = [label for label in order if label in labels]
    metadata = {**about, "labels": found or [NO_FAILURE]}
    if not found:
        return Score(1.0, reason, metadata, **more)
    return Score(0.0, reason, metadata, label=found[0], failed=True, **more)

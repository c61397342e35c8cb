"""Runs the state machine."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from hypothesis import HealthCheck, seed as seeded, settings
from hypothesis.stateful import run_state_machine_as_test

from support.stepped.machine import Protocol


def explore(examples: int, steps: int, seed: int | None = None, **options: Any) -> Counter[str]:
    """Run examples and return their figures.

    Raises ``AssertionError`` for a broken promise. ``options``: Hypothesis's.
    """

    class Explored(Protocol):
        figures: ClassVar[Counter[str]] = Counter()

    run_state_machine_as_test(
        Explored if seed is None else seeded(seed)(Explored),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            **options,
        ),
    )
    return Explored.figures

"""What verdicts of all judged metrics share: a number that may be unknown, and what becomes of one that is."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pandaeval_collector.base.score import Unscored, Why

Part = Annotated[float, Field(ge=0.0, le=1.0)] | None
"""0..1, or null: the record does not suffice to tell."""
BY_THE_GUIDE = "By the guide. Null if the record does not suffice to tell."


def undetermined(reason: str) -> Unscored:
    """For a verdict that says that nothing can be said."""
    return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not tell: {reason}")

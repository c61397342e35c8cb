"""The arguments of tools, with what agents read of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from pandaeval_collector.base.filters import MOST_PAIRS, MOST_TEXT, meaning

Agent = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("agent"))]
Service = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("service"))]
Environment = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("environment"))]
Session = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("session"))]
Metric = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("metric"))]
Status = Annotated[Literal["error", "ok"] | None, Field(description=meaning("status"))]
Text = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("text"))]
Attribute = Annotated[list[str] | None, Field(max_length=MOST_PAIRS, description=meaning("attribute"))]
Since = Annotated[datetime | None, Field(description=meaning("since"))]
Until = Annotated[datetime | None, Field(description=meaning("until"))]
Hours = Annotated[float | None, Field(gt=0, le=1e6, description="Only of the last so many hours; null: all.")]
Limit = Annotated[int, Field(ge=1, le=50, description="At most so many.")]
TraceId = Annotated[str, Field(max_length=64, description="32 hex digits, of which the first few are enough.")]


def since(hours: float | None) -> str | None:
    """Returns the time so many hours ago as RFC 3339; ``None`` for no limit."""
    if hours is None:
        return None
    try:
        return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    except OverflowError:
        return None

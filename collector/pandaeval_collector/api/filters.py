"""The filters that lists share, as query parameters."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import Depends, Query

from pandaeval_collector.store.wanted import Wanted

_LONGEST = 500


def _wanted(
    since: Annotated[datetime | None, Query(description="Traces that started then or later (RFC 3339).")] = None,
    until: Annotated[datetime | None, Query(description="Traces that started before then (RFC 3339).")] = None,
    agent: Annotated[str | None, Query(max_length=_LONGEST, description="Name of the root agent.")] = None,
    service: Annotated[str | None, Query(max_length=_LONGEST, description="service.name of the application.")] = None,
    environment: Annotated[str | None, Query(max_length=_LONGEST, description="deployment.environment.name.")] = None,
    user: Annotated[str | None, Query(max_length=_LONGEST, description="Id of the user.")] = None,
    session: Annotated[str | None, Query(max_length=_LONGEST, description="Id of the session.")] = None,
    failed: Annotated[bool | None, Query(description="Whether a result, or the run itself, failed.")] = None,
    metric: Annotated[
        str | None, Query(max_length=_LONGEST, description="With a result of this metric, such as trace.tool_loop.")
    ] = None,
    outcome: Annotated[
        Literal["scored", "assumed", "unscored"] | None, Query(description="With a result of this outcome.")
    ] = None,
    label: Annotated[str | None, Query(max_length=_LONGEST, description="With a result of this label.")] = None,
    success: Annotated[bool | None, Query(description="With a result that passed (true) or failed (false).")] = None,
    text: Annotated[
        str | None, Query(max_length=_LONGEST, description="Stands in the beginning of input or answer.")
    ] = None,
) -> Wanted:
    return Wanted(
        since_ms=_milliseconds(since),
        until_ms=_milliseconds(until),
        agent=agent,
        service=service,
        environment=environment,
        user=user,
        session=session,
        failed=failed,
        metric=metric,
        outcome=outcome,
        label=label,
        success=success,
        text=text,
    )


Filters = Annotated[Wanted, Depends(_wanted)]
"""A parameter of an operation that lists."""
Window = Annotated[
    Literal["1h", "24h", "7d", "all"], Query(description="How far back traces started that are looked at.")
]
CursorText = Annotated[str | None, Query(alias="cursor", max_length=200, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page.")]


_REACH_MS = {"1h": 3_600_000, "24h": 86_400_000, "7d": 604_800_000}


def within(wanted: Wanted, window: str, now_ms: int) -> Wanted:
    """``wanted`` of the traces of the window that ends now."""
    reach = _REACH_MS.get(window)
    return wanted if reach is None else replace(wanted, since_ms=max(now_ms - reach, wanted.since_ms or 0))


def _milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)

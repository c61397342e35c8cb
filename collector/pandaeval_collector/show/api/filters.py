"""Shared filters of lists as query parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from pandaeval_collector.base.filters import (
    FILTERS,
    MOST_PAIRS,
    MOST_TEXT,
    OUTCOMES,
    PAIR,
    STATUSES,
    Filter,
    meaning,
    of_runs,
)
from pandaeval_collector.store.listed import Wanted

_TYPES: dict[str, Any] = {
    "time": datetime | None,
    "text": Annotated[str, Field(max_length=MOST_TEXT)] | None,
    "flag": bool | None,
    "status": Literal[*STATUSES] | None,
    "outcome": Literal[*OUTCOMES] | None,
    "pairs": Annotated[list[Annotated[str, Field(pattern=PAIR, max_length=MOST_TEXT)]], Field(max_length=MOST_PAIRS)],
    "number": Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
}
_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""
_KEYWORD = inspect.Parameter.KEYWORD_ONLY
Window = Annotated[Literal["1h", "6h", "24h", "7d", "all"], Query(description="Time window in which traces started.")]
_REACH_MS = {"1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000}


def filter_types(
    described: Callable[..., Any], filters: Iterable[Filter] = FILTERS, prefix: str = ""
) -> dict[str, tuple[Any, list[str] | None]]:
    """Return type and default by filter name.

    ``described``: makes metadata of a description, such as pydantic's ``Field``. ``prefix``: of names in requests.
    """
    types: dict[str, tuple[Any, list[str] | None]] = {}
    for each in filters:
        metadata = described(description=meaning(each.name), alias=prefix + each.name if prefix else None)
        types[each.name] = _ANNOTATED[_TYPES[each.kind], metadata], [] if each.kind == "pairs" else None
    return types


def filter_parameters(filters: Iterable[Filter] = FILTERS, prefix: str = "") -> Callable[..., Wanted]:
    """Return :func:`to_wanted` with filters as parameters, so that FastAPI takes them from the query. ``prefix``: of
    their names there."""

    def made(**given: Any) -> Wanted:
        return to_wanted(**given)

    parameters = []
    for name, (annotation, default) in filter_types(Query, filters, prefix).items():
        parameters.append(inspect.Parameter(name, _KEYWORD, default=default, annotation=annotation))
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def to_wanted(**given: Any) -> Wanted:
    since, until = _milliseconds(given.pop("since", None)), _milliseconds(given.pop("until", None))
    return Wanted(since, until, **given | {"attribute": tuple(given.get("attribute") or ())})


def limited_to_window(wanted: Wanted, window: str, now_ms: int) -> Wanted:
    """Limit ``wanted`` to the ``window`` that ends now."""
    reach = _REACH_MS.get(window)
    if reach is None:
        return wanted
    return replace(wanted, since_ms=max(now_ms - reach, wanted.since_ms or 0))


def _milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int(time.timestamp() * 1000)


Filters = Annotated[Wanted, Depends(filter_parameters())]
"""A parameter of an operation that lists."""


class FilterFields(BaseModel):
    """Filters of traces, as in lists. Omitted fields exclude nothing."""

    model_config = ConfigDict(extra="forbid")

    def wanted(self) -> Wanted:
        return to_wanted(**self.model_dump())


if TYPE_CHECKING:  # the class is made at run time, which no checker can follow
    RunFilters = FilterFields
    GroupFilters = FilterFields
else:
    _OPTIONS = {"__base__": FilterFields, "__doc__": FilterFields.__doc__}
    RunFilters = create_model("RunFilters", **_OPTIONS, **filter_types(Field))
    GroupFilters = create_model("GroupFilters", **_OPTIONS, **filter_types(Field, of_runs()))

"""The filters that lists share, as query parameters and as a part of what runs are asked for; and names and ids as
people write them, against those that there are: bare metric names, and ids by their beginnings.

What is unknown is refused with what was probably meant: a question that matches nothing would be answered with silence.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal

import orjson
from fastapi import Depends, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from pandaeval_collector.base.filters import FILTERS, MOST_PAIRS, MOST_TEXT, OUTCOMES, PAIR, STATUSES, Filter, meaning
from pandaeval_collector.config import MetricNames, closest
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, ProblemError
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_collector.store.listed_pages import Position


# Cursors: where a page of a list ended, as a text that programs give back.
def cursor_of(position: Position | None) -> str | None:
    """Returns a position as an opaque text; ``None`` after the last page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def position_of(cursor: str | None) -> Position | None:
    """Returns the position in a cursor. Raises :class:`ProblemError` (400) for a text that is no cursor."""
    if cursor is None:
        return None
    try:
        value, number = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        position = float(value), number
        if type(number) is int and abs(number) < 1 << 63 and math.isfinite(position[0]):
            return position
    except (ValueError, TypeError, binascii.Error, OverflowError):
        pass
    raise ProblemError(400, "this is no cursor of ours: take the `next` of the page before")


def number_of(cursor: str | None) -> int | None:
    """Returns the number in a cursor of a list that is ordered by it. Raises :class:`ProblemError`."""
    position = position_of(cursor)
    return None if position is None else position[1]


_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""
_Text = Annotated[str, Field(max_length=MOST_TEXT)]
_Pairs = Annotated[list[Annotated[str, Field(pattern=PAIR, max_length=MOST_TEXT)]], Field(max_length=MOST_PAIRS)]
_TYPES: Mapping[str, Any] = {
    "time": datetime | None,
    "text": _Text | None,
    "flag": bool | None,
    "status": Literal[*STATUSES] | None,
    "outcome": Literal[*OUTCOMES] | None,
    "pairs": _Pairs,
    "number": Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
}


def wanted_of(**given: Any) -> Wanted:
    """Returns the store's form of the filters, given by their names."""
    since, until = (_milliseconds(given.pop(name, None)) for name in ("since", "until"))
    return Wanted(since, until, **given | {"attribute": tuple(given.get("attribute") or ())})


def _default(each: Filter) -> list[str] | None:
    return [] if each.kind == "pairs" else None


wanted_of.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(each),
            annotation=_ANNOTATED[_TYPES[each.kind], Query(description=meaning(each.name))],
        )
        for each in FILTERS
    ]
)
Filters = Annotated[Wanted, Depends(wanted_of)]
"""A parameter of an operation that lists."""


class FilterFields(BaseModel):
    """Which traces, as the lists take it. What is left out excludes nothing."""

    model_config = ConfigDict(extra="forbid")

    def wanted(self) -> Wanted:
        """Returns the filters in the store's form."""
        return wanted_of(**self.model_dump())


_FIELDS: Any = {
    each.name: (_ANNOTATED[_TYPES[each.kind], Field(description=meaning(each.name))], _default(each))
    for each in FILTERS
}
RunFilters: type[FilterFields] = create_model(
    "RunFilters", __base__=FilterFields, __doc__=FilterFields.__doc__, **_FIELDS
)
"""The filters of a run."""
Window = Annotated[
    Literal["1h", "6h", "24h", "7d", "all"], Query(description="How far back traces started that are looked at.")
]
CursorText = Annotated[str | None, Query(alias="cursor", max_length=200, description="`next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Most items of a page.")]


_REACH_MS = {"1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000, "7d": 604_800_000}


def within(wanted: Wanted, window: str, now_ms: int) -> Wanted:
    """Returns ``wanted`` limited to traces of the ``window`` that ends now."""
    reach = _REACH_MS.get(window)
    return wanted if reach is None else replace(wanted, since_ms=max(now_ms - reach, wanted.since_ms or 0))


def _milliseconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


_HEX = re.compile(r"[0-9a-f]{4,32}")
_SHOWN = 5
_COUNTER = "pandaeval.evaluations"


class Names:
    """Resolves names and ids that people write, by what one store holds. Any thread."""

    def __init__(self, finder: Finder, modules: tuple[str, ...]) -> None:
        """``modules``: those of the user's own metrics."""
        self._finder, self._modules = finder, modules

    def wanted(self, wanted: Wanted) -> Wanted:
        """Returns the filters with names and ids in full. Raises :class:`ProblemError` for unknown ones."""
        for column in ("agent", "service", "environment"):
            if (name := getattr(wanted, column)) is not None:
                self._check(column, name)
        for key in (pair.partition("=")[0] for pair in wanted.attribute):
            if key not in (known := self._finder.attribute_keys()):
                none = "no trace has a listed attribute; store.listed_attributes says which are"
                raise ProblemError(422, unknown("attribute", key, known, none))
        metric = None if wanted.metric is None else self.metric(wanted.metric)
        session = None if wanted.session is None else self._session(wanted.session)
        return replace(wanted, metric=metric, session=session or wanted.session)

    def metric(self, name: str) -> str:
        """Returns the key of the metric with this name. Raises :class:`ProblemError` if there is none, or several."""
        found = self._metrics.select(name)
        if not found:  # those that have results, such as metrics of a module that is no longer configured
            series = [about for about, _ in self._finder.counters(_COUNTER)]
            stored = {(str(each.get("pandaeval.level")), str(each.get("gen_ai.evaluation.name"))) for each in series}
            found = MetricNames(stored).select(name)
        if len(found) > 1:
            raise ProblemError(422, f"metric: {name} is the name of several metrics; write {' or '.join(found)}")
        if not found:
            raise ProblemError(422, f"metric: {name}: {self._metrics.unknown(name)}")
        return found[0]

    def trace(self, text: str) -> bytes:
        """Returns the trace id that begins with ``text``. Raises :class:`ProblemError` if there is none, or several."""
        written = text.strip().lower()
        if not _HEX.fullmatch(written):
            raise ProblemError(400, "the id of a trace has 32 hex digits, of which the first few are enough")
        if len(written) == 32:
            return bytes.fromhex(written)
        found = one_of(written, self._finder.traces_from(written, _SHOWN))
        if found is None:
            raise ProblemError(404, NO_TRACE)
        return bytes.fromhex(found)

    def session(self, text: str) -> str:
        """Returns the session id that is ``text``, else the one that begins so. Raises :class:`ProblemError`."""
        if (found := self._session(text)) is None:
            raise ProblemError(404, NO_SESSION)
        return found

    def _session(self, text: str) -> str | None:
        return one_of(text, self._finder.sessions_from(text, _SHOWN))

    @cached_property
    def _metrics(self) -> MetricNames:
        return MetricNames((metric.level, metric.name) for metric in registry(self._modules).values())

    def _check(self, column: str, name: str) -> None:
        known = self._finder.names()[column]
        if name in known or self._finder.is_named(column, name):  # type: ignore[arg-type]
            return
        raise ProblemError(422, unknown(column, name, known))


def unknown(kind: str, name: str, known: Iterable[str], none: str = "no trace is stored yet") -> str:
    """Returns the sentence for an unknown name, with its closest among ``known``; ``none``: what to say if none is."""
    known = [*known]
    meant = closest(name, known)
    if meant:
        return f"{kind}: there is no {name}; did you mean {meant}?"
    there = f"there are {', '.join(known[:_SHOWN])}{', …' if len(known) > _SHOWN else ''}" if known else none
    return f"{kind}: there is no {name}; {there}"


def one_of(text: str, found: Iterable[str]) -> str | None:
    """Returns the id in ``found`` that equals ``text``, else the only one; ``None`` for none. Raises
    :class:`ProblemError` for several."""
    ids = [*found]
    if text in ids:
        return text
    if len(ids) > 1:
        raise ProblemError(409, f"{text} is the beginning of several ids ({', '.join(ids[:_SHOWN])}): write more of it")
    return ids[0] if ids else None

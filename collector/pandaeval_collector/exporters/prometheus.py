"""Prometheus scrape endpoint, paged: OpenMetrics with exemplars on request, else classic text."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import math
import re
import sqlite3
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

from pandaeval_collector.base.instrument import Instrument
from pandaeval_collector.base.section import Section
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.exporters.zero_first import ZeroFirst, new_ones, own_points
from pandaeval_collector.store.series import Exemplar, Point

_NOTE_AFTER_S = 1.0
_UNITS = {"s": "seconds", "ms": "milliseconds", "By": "bytes", "%": "percent", "1": "ratio"}
_PLAIN = str.maketrans({"\\": r"\\", "\n": r"\n"})
_QUOTED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_OPENMETRICS = "application/openmetrics-text"


class Prometheus(Section):
    """The scrape endpoint /metrics at server.health."""

    enabled: bool = True
    """Serve /metrics."""
    results: bool | None = None
    """Include scores in /metrics. If null, scores are included only if no metrics go to OTLP, so that no score counts
    twice."""


SETTINGS = Prometheus


class Scrape:
    """Answers scrapes with the collector's own metrics and, with ``series``, scores. Renders on a separate thread."""

    def __init__(self, telemetry: Telemetry, series: ZeroFirst | None) -> None:
        self._telemetry, self._series = telemetry, series
        self._turn = asyncio.Lock()
        self._notes: set[asyncio.Task[None]] = set()

    def answer(self, accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
        kind, openmetrics = content_type(accept)
        return kind, self._body(ScrapeText(openmetrics))

    async def _body(self, text: ScrapeText) -> AsyncGenerator[bytes, None]:
        now = time.time()
        new: list[str] = []
        yield text.render(own_points(self._telemetry))
        if self._series is not None:
            pages = self._series.pages(now)

            def render() -> bytes | None:
                points = next(pages, None)
                if points is not None:
                    new.extend(new_ones(points))
                return None if points is None else text.render(points)

            try:
                while True:
                    async with self._turn:
                        page = await asyncio.to_thread(render)
                    if page is None:
                        break
                    yield page
            except sqlite3.Error:  # an unreadable store must not hide the counters of its errors
                self._telemetry.add("pandaeval.store.errors", "scrape")
        yield text.end()
        if self._series is not None and new:
            # Not before the answer is out: a zero that was noted and never seen would be no zero.
            note = asyncio.create_task(self._note(self._series, new, now))
            self._notes.add(note)
            note.add_done_callback(self._notes.discard)

    async def _note(self, series: ZeroFirst, keys: Sequence[str], now: float) -> None:
        await asyncio.sleep(_NOTE_AFTER_S)
        with contextlib.suppress(RuntimeError):  # the store is closed: the zeros are shown again by the next process
            await series.shown(keys, now)


# Series as text, piece by piece. ``prometheus_client`` renders a registry as a whole and takes ten times as long; the
# text of a page of series is the same to the byte.
@functools.lru_cache(maxsize=256)
def metric_name(name: str, unit: str) -> tuple[str, str]:
    """Return a metric family's name with unit suffix but without ``_total``, and the unit or ``""``."""
    escaped, word = label_name(name), _UNITS.get(unit)
    if word is None:
        return escaped, ""
    if word not in escaped.split("_"):
        escaped = f"{escaped}_{word}"
    return escaped, word if escaped.endswith(f"_{word}") else ""


@functools.lru_cache(maxsize=256)
def label_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_:]+", "_", key)


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0.0 else "-Inf"
    text = repr(float(value))
    if value < 1e6 or "e" in text:
        return text
    whole, _, rest = text.partition(".")
    return f"{whole[0]}.{whole[1:]}{rest}".rstrip("0.") + f"e+{len(whole) - 1:02d}"


def content_type(accept: str) -> tuple[str, bool]:
    """Return the content type for the ``accept`` header, and whether it is OpenMetrics."""
    if _OPENMETRICS in accept:
        return f"{_OPENMETRICS}; version=1.0.0; charset=utf-8", True
    return "text/plain; version=0.0.4; charset=utf-8", False


class ScrapeText:
    """Writes a scrape. Pass an instrument's points consecutively."""

    def __init__(self, openmetrics: bool) -> None:
        self._openmetrics = openmetrics
        self._family = ""

    def render(self, points: Iterable[Point]) -> bytes:
        """Render points as lines, with type and help above an instrument's first point."""
        pieces: list[str] = []
        for point in points:
            if point.instrument.name != self._family:
                self._family = point.instrument.name
                pieces.append(_head(point.instrument, self._openmetrics))
            pieces.extend(_samples(point, self._openmetrics))
        return "".join(pieces).encode()

    def end(self) -> bytes:
        return b"# EOF\n" if self._openmetrics else b""


@functools.lru_cache(maxsize=256)
def _head(instrument: Instrument, openmetrics: bool) -> str:
    name, unit = metric_name(instrument.name, instrument.unit)
    if instrument.kind == "counter" and not openmetrics:
        name += "_total"
    text = instrument.description.translate(_QUOTED if openmetrics else _PLAIN)
    head = f"# HELP {name} {text}\n# TYPE {name} {instrument.kind}\n"
    return f"{head}# UNIT {name} {unit}\n" if unit and openmetrics else head


def _samples(point: Point, openmetrics: bool) -> Iterator[str]:
    name, _ = metric_name(point.instrument.name, point.instrument.unit)
    pairs = sorted(
        (label_name(key), f'{label_name(key)}="{value.translate(_QUOTED)}"') for key, value in point.attributes
    )
    labels = ",".join(pair for _, pair in pairs)
    braced = f"{{{labels}}}" if labels else ""
    exemplars = dict(point.exemplars) if openmetrics else {}
    if point.instrument.kind != "histogram":
        suffix = "_total" if point.instrument.kind == "counter" else ""
        yield f"{name}{suffix}{braced} {_number(point.total)}{_exemplar(exemplars.get(0))}\n"
        return
    # The cumulative counts by upper bound, as Prometheus has them, with ``le`` in order among the labels.
    before = "".join(f"{pair}," for key, pair in pairs if key < "le")
    behind = "".join(f",{pair}" for key, pair in pairs if key > "le")
    counts = itertools.accumulate(point.buckets)
    for index, (bound, count) in enumerate(zip(_bounds(point.instrument), counts, strict=True)):
        yield f'{name}_bucket{{{before}le="{bound}"{behind}}} {_number(count)}{_exemplar(exemplars.get(index))}\n'
    yield f"{name}_count{braced} {_number(sum(point.buckets))}\n"
    yield f"{name}_sum{braced} {_number(point.total)}\n"


@functools.lru_cache(maxsize=256)
def _bounds(instrument: Instrument) -> tuple[str, ...]:
    return (*(str(float(bound)) for bound in instrument.bounds), "+Inf")


def _exemplar(exemplar: Exemplar | None) -> str:
    """Write an exemplar: 64 characters of labels (OpenMetrics allows 128)."""
    if exemplar is None:
        return ""
    value, seconds = _number(exemplar.value), exemplar.time_ns / 1e9
    return f' # {{span_id="{exemplar.span_id}",trace_id="{exemplar.trace_id}"}} {value} {seconds}'

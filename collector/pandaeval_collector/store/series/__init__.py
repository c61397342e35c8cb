"""The score series: the OpenTelemetry metrics of results, and how results become increments of them.

The series are a table in the store, updated in the transaction that stores a result: a restart resets nothing, a crash
counts nothing twice. OTLP metrics and the scrape endpoint are two renderings of that table.
"""

from pandaeval_collector.base.instrument import MAX_SERIES
from pandaeval_collector.store.series.increment import (
    EVALUATIONS,
    INSTRUMENTS,
    REVISIONS,
    SCORE,
    Exemplar,
    Increment,
    Point,
    increments,
    series_rows,
    shadow_increments,
)
from pandaeval_collector.store.series.labels import CAPS, SeriesLabels

__all__ = [
    "CAPS",
    "EVALUATIONS",
    "INSTRUMENTS",
    "MAX_SERIES",
    "REVISIONS",
    "SCORE",
    "Exemplar",
    "Increment",
    "Point",
    "SeriesLabels",
    "increments",
    "series_rows",
    "shadow_increments",
]

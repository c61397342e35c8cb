"""The vectors of all texts that metrics want, in one batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pandaeval_collector.analysis.embedding import Embedder, knows
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.scoring.metric import Texts, TraceMetric
from pandaeval_otel.model import Trace

_log = logging.getLogger(__package__)


def _of(metric: TraceMetric, trace: Trace) -> Sequence[str]:
    """The texts that a metric wants of a trace. Where it cannot say, it gets none, and fails when it asks for one."""
    try:
        return () if metric.texts is None else metric.texts(trace)
    except Exception:  # noqa: BLE001 - a metric's bug must cost its own result, and no other's
        _log.exception("metric %s cannot say which texts it needs", metric.key)
        return ()


def vectors(embedder: Embedder, metrics: Sequence[TraceMetric], traces: Iterable[Trace]) -> Texts:
    """Those of the texts that ``metrics`` want of ``traces``. If they cannot be had for a single trace, asking for one
    of them raises."""
    traces = list(traces)
    wanted = (text for trace in traces for metric in metrics if metric.texts is not None for text in _of(metric, trace))
    try:
        found = embed_texts(embedder, wanted)
    except Exception as error:  # whatever an embedder raises costs the results that need it, and no others
        if len(traces) > 1:
            raise
        _log.exception("texts could not be embedded")
        return Texts({}, frozenset(), embedder.id, embedder.bands, error)
    return Texts.of(found.rows, found.chunked, embedder.id, embedder.bands, knows(embedder))

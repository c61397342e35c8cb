"""The vectors of all texts that metrics want, in one batch."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from pandaeval_collector.embedding import Embedder
from pandaeval_collector.embedding.text import embed_texts
from pandaeval_collector.metric import Texts, TraceMetric
from pandaeval_otel.model import Trace

_log = logging.getLogger(__package__)


def vectors(embedder: Embedder, metrics: Sequence[TraceMetric], traces: Iterable[Trace]) -> Texts:
    """Those of the texts that ``metrics`` want of ``traces``. If they cannot be had for a single trace, asking for one
    of them raises."""
    traces = list(traces)
    wanted = (
        text for trace in traces for metric in metrics if metric.texts is not None for text in metric.texts(trace)
    )
    try:
        found = embed_texts(embedder, wanted)
    except Exception as error:  # whatever an embedder raises costs the results that need it, and no others
        if len(traces) > 1:
            raise
        _log.exception("texts could not be embedded")
        return Texts({}, frozenset(), embedder.id, embedder.bands, error)
    return Texts.of(found.rows, found.chunked, embedder.id, embedder.bands)

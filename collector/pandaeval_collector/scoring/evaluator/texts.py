"""The vectors of all texts that metrics want, in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pandaeval_collector.analysis.embedding import Embedder, knows
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.scoring.metric import Texts, TraceMetric
from pandaeval_otel.base.component_errors import EMBEDDER, ERRORS, METRIC
from pandaeval_otel.model import Trace


def _of(metric: TraceMetric, trace: Trace) -> Sequence[str]:
    """The texts that a metric wants of a trace. Where it cannot say, it gets none, and fails when it asks for one."""
    try:
        return () if metric.texts is None else metric.texts(trace)
    except Exception as error:  # noqa: BLE001 - a metric's bug must cost its own result, and no other's
        ERRORS.note(METRIC, metric.key, error)
        return ()


def vectors(embedder: Embedder, metrics: Sequence[TraceMetric], traces: Iterable[Trace]) -> Texts:
    """Embeds the texts that ``metrics`` want of ``traces``. If they cannot be had for a single trace, asking for one
    of them raises."""
    traces = list(traces)
    wanted = [text for trace in traces for metric in metrics if metric.texts is not None for text in _of(metric, trace)]
    try:
        found = embed_texts(embedder, wanted)
    except Exception as error:  # whatever an embedder raises costs the results that need it, and no others
        ERRORS.note(EMBEDDER, embedder.id, error)
        if len(traces) > 1:
            raise
        return Texts({}, frozenset(), embedder.id, embedder.bands, error)
    return Texts.of(found.rows, found.chunked, embedder.id, embedder.bands, knows(embedder))

"""Setup of scoring processes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config

if TYPE_CHECKING:
    from pandaeval_collector.pipeline.line.line import Line


@dataclass(frozen=True, slots=True)
class LineSetup:
    """Setup of a scoring process. ``signals``: which of ``logs`` and ``traces`` an exporter sends."""

    config: Config
    signals: Collection[str] = ()

    def open(self, telemetry: Telemetry) -> Line:
        """Make the line in its own process, to keep its imports out of the front."""
        from pandaeval_collector.exporters.delivery.emitter import Emitter
        from pandaeval_collector.pipeline.line.line import Line
        from pandaeval_collector.pipeline.line.setup_advice import Hints
        from pandaeval_collector.runs.settings import evaluator
        from pandaeval_collector.store import StoreReader
        from pandaeval_collector.store.live_groups import LiveGroups
        from pandaeval_collector.store.series import SeriesLabels
        from pandaeval_otel.dialects import dialects

        config = self.config
        dialects()  # reports errors of installed dialects now, not at the first trace
        scorer, store = evaluator(config), StoreReader(Path(config.store.path))
        labels = SeriesLabels(store.tally.labels(), store.tally.names())
        telemetry.gauge("pandaeval.series", lambda: labels.series)
        emitter = Emitter(
            self.signals,
            labels,
            lambda results: telemetry.add("pandaeval.series.folded", "", results),
            page=config.ui.url,
            shows_failed=config.spans.failed_status == "error",
        )
        groups = LiveGroups(scorer.embedder, store.failure_groups())
        hints = Hints(config.judge.model is not None)
        return Line(store, scorer, emitter, failures=groups, hands_over=config.kafka.hands_over, hints=hints)

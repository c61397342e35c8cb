"""The accounts of a collector: each span and log record that it decoded must have a fate. A difference is a bug."""

from __future__ import annotations

import os
from pathlib import Path

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.store import Store

_STATM = Path("/proc/self/statm")
_INSTRUMENTS = ("pandaeval.spans", "pandaeval.logs")
_FATES = ("stored", "duplicate", "own_output", "rejected", "ignored", "label")


def residual(telemetry: Telemetry, open_items: int) -> int:
    """Returns how many items have no fate: decoded items that were neither stored nor counted as something else, plus
    stored items that are neither decided, nor given to another collector, nor open. 0 whenever the event loop asks,
    after a restart too."""
    lost = sum(telemetry.total(name, "decoded") - telemetry.total(name, *_FATES) for name in _INSTRUMENTS)
    taken = sum(telemetry.total(name, "stored") for name in _INSTRUMENTS)
    resumed, done = (
        telemetry.total("pandaeval.items", "resumed"),
        telemetry.total("pandaeval.items", "decided", "moved"),
    )
    return lost + taken + resumed - (done + open_items)


def publish(telemetry: Telemetry, store: Store, pipeline: Pipeline) -> None:
    """Registers gauges that read ``store`` and ``pipeline`` whenever they are looked at."""
    telemetry.gauge("pandaeval.traces.open", lambda: pipeline.open_traces)
    telemetry.gauge("pandaeval.lag", lambda: pipeline.lag)
    telemetry.gauge("pandaeval.accounting.residual", lambda: residual(telemetry, pipeline.open_items))
    telemetry.gauge("pandaeval.store.size", store.size_bytes)
    telemetry.gauge("pandaeval.queue.size", store.waiting, queue="store")
    if _STATM.exists():
        telemetry.gauge("pandaeval.memory", resident_bytes)


def resident_bytes() -> int:
    """Returns how many bytes of memory this process has in RAM; on Linux."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

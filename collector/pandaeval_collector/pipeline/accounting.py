"""Counts of spans and log records by outcome. Each decoded item has one outcome; a difference is a bug."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_otel.wire.fragments import Split

STATM = Path("/proc/self/statm")
SPANS, LOGS = "pandaeval.spans", "pandaeval.logs"
_FATES = ("stored", "duplicate", "own_output", "rejected", "ignored")


def residual(telemetry: Telemetry, open_items: int) -> int:
    """Return the number of items without an outcome, always 0 on the event loop."""
    lost = sum(telemetry.total(name, "decoded") - telemetry.total(name, *_FATES) for name in (SPANS, LOGS))
    taken = sum(telemetry.total(name, "stored") for name in (SPANS, LOGS))
    resumed, done = (
        telemetry.total("pandaeval.items", "resumed"),
        telemetry.total("pandaeval.items", "decided", "moved"),
    )
    return lost + taken + resumed - (done + open_items)


def count_kept(telemetry: Telemetry, instrument: str, stored: int, duplicate: int, late: int) -> None:
    decoded = stored + duplicate + late
    fates = (decoded, "decoded", ""), (stored, "stored", ""), (duplicate, "duplicate", ""), (late, "rejected", "late")
    _count(telemetry, instrument, fates)


def count_in_no_fragment(telemetry: Telemetry, instrument: str, split: Split) -> None:
    fates = (
        (split.own_output + split.rejected + split.ignored, "decoded", ""),
        (split.own_output, "own_output", ""),
        (split.rejected, "rejected", "invalid"),
        (split.ignored, "ignored", "no_trace"),
    )
    _count(telemetry, instrument, fates)
    _count(telemetry, "pandaeval.claims", [(split.claimed, "own_output", instrument.removeprefix("pandaeval."))])


def _count(telemetry: Telemetry, instrument: str, fates: Iterable[tuple[int, str, str]]) -> None:
    for items, outcome, reason in fates:
        if items:
            telemetry.add(instrument, outcome, items, reason)


def resident_bytes() -> int:
    """Return the resident memory in bytes; Linux only."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

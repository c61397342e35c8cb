"""The collector's own counters and gauges, in the form of series."""

from __future__ import annotations

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store.series import Point


def own_points(telemetry: Telemetry) -> list[Point]:
    """Reads the collector's counters (since this process began) and gauges. On the event loop."""
    return [
        Point(
            instrument=measure.instrument,
            attributes=measure.attributes,
            start_ns=telemetry.start_ns,
            count=1,
            total=measure.value,
            buckets=(),
            exemplars=(),
        )
        for measure in telemetry.measures()
    ]

"""Counts every span and log record that came in under what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.pipeline.submitted import TakenApart
from pandaeval_otel.wire.fragments import Split


class ItemCounts:
    """Adds to the instruments ``pandaeval.spans`` and ``pandaeval.logs``; the parameter ``instrument`` is one of the
    two."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def _add(self, instrument: str, outcome: str, items: int, reason: str = "") -> None:
        if items:
            self._telemetry.add(instrument, outcome, items, reason)

    def kept(self, instrument: str, stored: int, duplicate: int, late: int) -> None:
        """Counts items of fragments: new ones, ones that the store had, and ones of traces scored for good before."""
        self._add(instrument, "decoded", stored + duplicate + late)
        self._add(instrument, "stored", stored)
        self._add(instrument, "duplicate", duplicate)
        self._add(instrument, "rejected", late, "late")

    def in_no_fragment(self, instrument: str, split: Split) -> None:
        """Counts the items of a request that went into no fragment: our own output, people's verdicts, invalid ones,
        and ones without a trace."""
        self._add(instrument, "decoded", split.own_output + split.rejected + split.ignored + len(split.labels))
        self._add(instrument, "label", len(split.labels))
        self._add(instrument, "own_output", split.own_output)
        self._add("pandaeval.claims", "own_output", split.claimed, instrument.removeprefix("pandaeval."))
        self._add(instrument, "rejected", split.rejected, "invalid")
        self._add(instrument, "ignored", split.ignored, "no_trace")

    def refused(self, taken: Sequence[TakenApart]) -> None:
        """Counts all items of the submitted traces that have a problem."""
        for each in taken:
            if each.problem:
                for instrument, split in (("pandaeval.spans", each.spans), ("pandaeval.logs", each.logs)):
                    self._add(instrument, "decoded", split.decoded)
                    self._add(instrument, "rejected", split.decoded, "invalid")

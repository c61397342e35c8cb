"""People's verdicts that come as log records: refused unless the configuration allows them, stored apart from traces.

An agent can write such a record as well as a review tool, so they rank below what people enter, and each one has to be
about a run that this collector knows.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import Store
from pandaeval_otel.wire.fragments import Split
from pandaeval_otel.wire.labels import HumanLabel

_log = logging.getLogger(__name__)

OFF = "people's verdicts by OTLP are off: set labels.over_otlp, or use the API or `pandaeval labels import`"
UNKNOWN = "this collector has decided no such trace or session"
_AT_ONCE = 100
"""Verdicts that are looked up before the event loop gets its turn: some milliseconds."""
_PER_COMMIT = 1_000
"""Verdicts of a request after which the commits of others get their turn."""


class IncomingVerdicts:
    """Stores people's verdicts that come as log records. Runs on the event loop of the intake. ``is_open``: whether a
    trace (by id) is being collected. ``refusing`` turns errors of the store into refusals."""

    def __init__(
        self,
        store: Store,
        telemetry: Telemetry,
        is_open: Callable[[bytes], bool],
        refusing: Callable[[], AbstractContextManager[None]],
        allowed: bool,
    ) -> None:
        self._store, self._telemetry, self._is_open = store, telemetry, is_open
        self._refusing, self._allowed = refusing, allowed
        self._told = False

    async def keep(self, splits: Sequence[Split]) -> None:
        """Stores the verdicts of split requests. One that is refused becomes a rejected record of its split, with the
        reason as the split's message. Raises a ``Refusal`` where nothing can be stored."""
        if not any(split.labels for split in splits):
            return
        beside = {fragment.trace_id for split in splits for fragment in split.fragments}
        for split in splits:
            good: list[HumanLabel] = []
            for start in range(0, len(split.labels) if self._allowed else 0, _AT_ONCE):
                some = split.labels[start : start + _AT_ONCE]
                good += [label for label in some if self._is_known(label, beside)]
                await asyncio.sleep(0)
            refused = len(split.labels) - len(good)
            split.labels = good
            if refused:
                why = UNKNOWN if self._allowed else OFF
                split.rejected += refused
                split.message = split.message or f"label: {why}"
                self._telemetry.add("pandaeval.labels", "refused", refused)
                if not self._told:
                    self._told = True
                    _log.warning(
                        "a log record that is a person's verdict was refused: %s (docs/trust.md#what-labels-are)", why
                    )
            for start in range(0, len(good), _PER_COMMIT):
                some = good[start : start + _PER_COMMIT]
                with self._refusing():
                    fates = await asyncio.wrap_future(self._store.people.put(some, time.time(), "otlp"))
                for fate, number in fates.items():
                    self._telemetry.add("pandaeval.labels", fate, number)

    def _is_known(self, label: HumanLabel, beside: Collection[bytes]) -> bool:
        if label.metric.startswith("trace."):
            trace_id = bytes.fromhex(label.unit)
            if trace_id in beside or self._is_open(trace_id):
                return True
        return self._store.people.is_known(label)

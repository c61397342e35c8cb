"""Limits the tokens of a record that a judge is shown: by its model's window, and to less if that proves too much."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.judge.known_models import LEAST_RECORD, MOST_RECORD, SMALLER_RECORD

_log = logging.getLogger(__name__)

RecordBudget = Callable[[str], Awaitable[int]]
"""The tokens of a record that fit into a model's window, as far as that is known."""


class RecordBudgets:
    """The tokens of a record that each model is shown. On one event loop."""

    def __init__(self, known: RecordBudget | None = None) -> None:
        """``known`` may raise :class:`CallFailedError`; the call to the model will then raise it too."""
        self._known = known
        self._smaller: dict[str, int] = {}

    async def of(self, model: str) -> int:
        """Returns the tokens of a record for a model: 400 to 12,000 unless the configuration says more."""
        if model in self._smaller:
            return self._smaller[model]
        try:
            return MOST_RECORD if self._known is None else await self._known(model)
        except CallFailedError:
            return MOST_RECORD

    def was_too_long(self, model: str, shown: int) -> int:
        """Returns a smaller budget after a model refused a record of ``shown`` tokens, and limits all later ones to
        it."""
        smaller = max(LEAST_RECORD, min(SMALLER_RECORD, shown * 2 // 3))
        if smaller < self._smaller.get(model, MOST_RECORD):
            self._smaller[model] = smaller
            _log.warning(
                "the window of the judge %s is too short for %d tokens of a record; it is shown %d at most from now on "
                "(judge.context_tokens says how many it takes)",
                model,
                shown,
                smaller,
            )
        return smaller

"""How many tokens of a record a judge is shown: by its model's window, and less where that turns out to be too much."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pandaeval_collector.judge.call import CallFailedError
from pandaeval_collector.judge.known import LEAST_RECORD, MOST_RECORD, SMALLER_RECORD

_log = logging.getLogger(__name__)

RecordBudget = Callable[[str], Awaitable[int]]
"""The tokens of a record that fit into a model's window, as far as that is known."""


class RecordBudgets:
    """One for each model. On one event loop."""

    def __init__(self, known: RecordBudget | None = None) -> None:
        """``known``: may raise :class:`CallFailedError`, as whoever asks the model then will hear too."""
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
        """What to show instead of a record of ``shown`` tokens, which the model did not take: of this trace, and at
        most of all later ones."""
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

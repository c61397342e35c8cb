"""Logs once when a judge and those that it judges, or that it is compared with, are of one family."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pandaeval_collector.base.untrusted.printable import one_printable_line
from pandaeval_collector.judge.family import kin

_log = logging.getLogger(__name__)

_MOST = 200
"""Pairs that are remembered, and logged: agents name their models themselves."""
_NAME = 100


class Kinship:
    """Remembers which pairs it spoke of. One event loop."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def meets(self, judge: str, models: Iterable[str]) -> None:
        """``models``: of the run that is judged."""
        for model in models:
            pair = judge, model[:_NAME]
            if pair in self._seen or len(self._seen) >= _MOST:
                continue
            self._seen.add(pair)
            shared = kin(judge, model)
            if shared is not None:
                _log.warning(
                    "the judge %s judges runs of %s, which is of the same family (%s): models rate work of their own "
                    "kind too high; set another judge.model",
                    judge,
                    one_printable_line(model[:_NAME]),
                    one_printable_line(shared[:_NAME]),
                )


def warn_of_second(judge: str, second: str) -> None:
    """Logs that a second judge of the first one's family sees little that the first one does not."""
    shared = kin(judge, second)
    if shared is not None:
        _log.warning(
            "judge.second.model (%s) is of the same family as the judge %s (%s): what they agree on may be a fault "
            "that they share; name a model of another maker",
            second,
            judge,
            shared,
        )

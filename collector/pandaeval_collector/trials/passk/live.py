"""Repeated cases in a running collector: pass^k of each, with its interval, as gauges.

A case is what results name in ``metadata.case``; its newest trials count (``trials.window``). All of it is held by one
event loop; figures are calculated on a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from pandaeval_collector.analysis.stats.pass_k import pass_pow_k
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import ResultRow
from pandaeval_otel.base.names import bounded

NAME = "pandaeval.pass_pow_k"
COUNTED = "pandaeval.trials"
MOST_CASES = 200
"""Cases with gauges: the first ones to come. What is tried besides is counted as ``left_out``."""
_NAMES_A_CASE = b'"case":'
Gauges = Mapping[tuple[str, Attributes], float]
MOST_UNITS = 100
"""Traces of an attempt that are told apart; of more, the oldest are remembered as one."""
_EARLIER = ""
_Units = dict[str, bool | None]
"""Whether each trace (or trial) of an attempt passed."""


class LiveTrials:
    """The trials of cases by some metrics (``level.name``), for each of ``ks``."""

    key = "live_trials"

    def __init__(self, metrics: Sequence[str], ks: Sequence[int], window: int, telemetry: Telemetry) -> None:
        self._metrics, self._ks, self._window = frozenset(metrics), tuple(ks), window
        self._telemetry = telemetry
        self._cases: dict[str, dict[str, dict[str, _Units]]] = {}

    def take(self, rows: Sequence[ResultRow]) -> bool:
        """Takes in rows that were committed; whether any was a trial's."""
        taken = [self._add(row) for row in rows if row.metric in self._metrics and _NAMES_A_CASE in row.body]
        return any(taken)

    def gauges(self) -> Gauges:
        """Returns pass^k of each case, metric and k: the Bayesian median and the ends of the 95 % interval, and how
        many determined trials they rest on."""
        return dict(self._gauges())

    def state(self) -> Any:
        """Returns the state, JSON-ready, for :meth:`restore`."""
        return self._cases

    def restore(self, state: Any) -> None:
        """Goes on from a state, as far as its metrics are still asked for."""
        self._cases = {metric: cases for metric, cases in state.items() if metric in self._metrics}

    def _add(self, row: ResultRow) -> bool:
        result = orjson.loads(row.body)
        about = result["metadata"]
        case = about.get("case")
        if not case or result["outcome"] == "assumed":
            return False
        cases = self._cases.setdefault(row.metric, {})
        trials = cases.get(bounded(str(case)))
        if trials is None:
            if len(cases) >= MOST_CASES:
                self._telemetry.add(COUNTED, "left_out", 1, "too_many_cases")
                return False
            trials = cases[bounded(str(case))] = {}
        unit = bounded(row.unit)
        trial, session = str(about.get("trial") or ""), str(result.get("session_id") or "")
        whole = row.metric.startswith("trial.")  # each of these is about a whole trial
        attempt = bounded(f"{trial}\t{session}" if (trial or session) and not whole else unit)
        if about.get("part_of"):  # what a part of a trial was worth, before others followed
            return trials.pop(attempt, None) is not None
        if attempt not in trials:
            self._telemetry.add(COUNTED, "counted")
            for oldest in list(trials)[: max(0, len(trials) + 1 - self._window)]:
                del trials[oldest]
        units = trials.setdefault(attempt, {})
        units[unit] = row.success
        if len(units) > MOST_UNITS:  # an application may state the same attempt for good
            oldest = next(each for each in units if each != _EARLIER)
            units[_EARLIER] = _passed([*([units[_EARLIER]] if _EARLIER in units else []), units.pop(oldest)])
        return True

    def _gauges(self) -> Iterator[tuple[tuple[str, Attributes], float]]:
        # On a thread, beside the event loop that adds: copies, in which a change of size cannot come between.
        for metric, cases in list(self._cases.items()):
            level, _, name = metric.partition(".")
            for case, trials in list(cases.items()):
                passed = [_passed(list(units.values())) for units in list(trials.values())]
                n, c = sum(each is not None for each in passed), passed.count(True)
                about = (("gen_ai.evaluation.name", name), ("pandaeval.case", case), ("pandaeval.level", level))
                yield (f"{NAME}.trials", about), float(n)
                for k in self._ks:
                    found = pass_pow_k(n, c, k, "bayesian")
                    of_k = (*about[:1], ("k", str(k)), *about[1:])
                    for end, value in (("", found.median), (".ci_low", found.ci_low), (".ci_high", found.ci_high)):
                        if value is not None:
                            yield (f"{NAME}{end}", of_k), value


def _passed(units: Sequence[bool | None]) -> bool | None:
    if False in units:
        return False
    return None if None in units else True

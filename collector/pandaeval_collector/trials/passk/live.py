"""Repeated cases in a running collector: pass^k of each, with its interval, as gauges.

A case is what results name in ``metadata.case``; its newest trials count (``trials.window``). All of it is held by one
event loop; figures are calculated on a thread.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import orjson

from pandaeval_collector.analysis.stats.pass_k import pass_pow_k
from pandaeval_collector.analysis.stats.stream import StreamGate
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.base.runtime.backoff import Bell
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.store import ResultRow, Store
from pandaeval_otel.base.names import bounded

NAME = "pandaeval.pass_pow_k"
COUNTED = "pandaeval.trials"
MOST_CASES = 200
"""Cases with gauges, the first ones to come. Trials of others are counted as ``left_out``."""
_NAMES_A_CASE = b'"case":'
Gauges = Mapping[tuple[str, Attributes], float]
MOST_UNITS = 100
"""Traces of an attempt that are kept apart; of more, the oldest are merged into one."""
_EARLIER = ""
_Units = dict[str, bool | None]
"""Whether each trace (or trial) of an attempt passed."""


class LiveTrials:
    """Keeps the newest trials of each case by some metrics (``level.name``), for pass^k with each of ``ks``."""

    key = "live_trials"

    def __init__(self, metrics: Sequence[str], ks: Sequence[int], window: int, telemetry: Telemetry) -> None:
        self._metrics, self._ks, self._window = frozenset(metrics), tuple(ks), window
        self._telemetry = telemetry
        self._cases: dict[str, dict[str, dict[str, _Units]]] = {}

    def take(self, rows: Sequence[ResultRow]) -> bool:
        """Takes in committed rows; returns whether any belongs to a trial."""
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
        """Restores a state, except for metrics that are no longer asked for."""
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


# Shows what a running collector learns of repeated trials and of streams as gauges, and keeps it over restarts.
_log = logging.getLogger(__name__)


class Watch(Protocol):
    """Something that learns from results. ``key``: the name of its state in the store."""

    key: str

    def take(self, rows: Sequence[ResultRow]) -> bool: ...

    def gauges(self) -> Mapping[tuple[str, Attributes], float]: ...

    def state(self) -> Any: ...

    def restore(self, state: Any) -> None: ...


class Monitor:
    """Feeds committed results to ``watches``. If any came, calculates their gauges on a thread every ``interval``
    seconds and stores their states: a crash loses what came since. On one event loop."""

    def __init__(self, store: Store, telemetry: Telemetry, watches: Sequence[Watch], interval: float) -> None:
        self._store, self._watches, self._interval = store, watches, interval
        self._shown: dict[tuple[str, Attributes], float] = {}
        self._changed: set[str] = set()
        self._bell, self._stopping = Bell(), False
        self._task: asyncio.Task[None] | None = None
        for watch in watches:
            self._restore(watch)
        telemetry.family(lambda: self._shown)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pandaeval-trials")

    async def stop(self) -> None:
        """Stops, and returns when everything that came is in the store."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await self._task

    def take(self, rows: Sequence[ResultRow]) -> None:
        """Takes in the new rows of a commit."""
        self._changed.update(watch.key for watch in self._watches if watch.take(rows))

    async def _run(self) -> None:
        while True:
            ends = self._stopping  # what came before is kept by this round
            changed, self._changed = self._changed, set()
            try:
                await self._round(changed)
            except (sqlite3.Error, OSError) as error:
                self._changed |= changed
                _log.error("what trials and streams showed could not be kept (%s); trying again", error)
            if ends:
                return
            await self._bell.sleep(self._interval)

    async def _round(self, changed: set[str]) -> None:
        if not changed:
            return
        states = {watch.key: orjson.dumps(watch.state()).decode() for watch in self._watches if watch.key in changed}
        self._shown = await asyncio.to_thread(self._calculate)
        for key, state in states.items():
            await asyncio.wrap_future(self._store.put(key, state))

    def _calculate(self) -> dict[tuple[str, Attributes], float]:
        return {name: value for watch in self._watches for name, value in watch.gauges().items()}

    def _restore(self, watch: Watch) -> None:
        kept = self._store.reads.get(watch.key)
        if kept is None:
            return
        try:
            watch.restore(orjson.loads(kept))
            self._changed.add(watch.key)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            _log.warning("what was kept of %s cannot be read (%s); it begins anew", watch.key, error)


# Gates for streams in a running collector: one for each watched metric and agent, looked at after every result.

_STREAM = "pandaeval.stream"
MOST_AGENTS = 50
"""Agents per metric with a gate of their own; the others share one."""
OTHER = "__other__"


class LiveGates:
    """Keeps a stream gate for each agent and metric (``level.name``). Skips results without a verdict, later revisions
    and assumed results. On one event loop; :meth:`gauges` on any thread."""

    key = "stream_gates"

    def __init__(self, metrics: Sequence[str], rate: float, level: float) -> None:
        self._rate, self._level = rate, level
        self._gates: dict[str, dict[str, StreamGate]] = {metric: {} for metric in metrics}

    def take(self, rows: Sequence[ResultRow]) -> bool:
        """Takes in committed rows; returns whether any changed a gate."""
        taken = False
        for row in rows:
            if row.metric in self._gates and row.revision == 1 and row.success is not None:
                taken = self._add(row) or taken
        return taken

    def gauges(self) -> Mapping[tuple[str, Attributes], float]:
        """Returns, for each metric and agent, the evidence (an alarm from 1/level), whether there is an alarm, and the
        number of results."""
        found: dict[tuple[str, Attributes], float] = {}
        for metric, gates in self._gates.items():
            level, _, name = metric.partition(".")
            for agent, gate in list(gates.items()):
                about = (("gen_ai.agent.name", agent), ("gen_ai.evaluation.name", name), ("pandaeval.level", level))
                attributes = tuple(pair for pair in about if pair[1])
                found[f"{_STREAM}.e_value", attributes] = gate.e_value
                found[f"{_STREAM}.alarm", attributes] = float(gate.is_on)
                found[f"{_STREAM}.results", attributes] = float(gate.n)
        return found

    def state(self) -> Any:
        """Returns the state, JSON-ready, for :meth:`restore`."""
        gates = {metric: {agent: gate.state() for agent, gate in each.items()} for metric, each in self._gates.items()}
        return {"rate": self._rate, "level": self._level, "gates": gates}

    def restore(self, state: Any) -> None:
        """Restores a state, unless it has another rate or level."""
        if (state["rate"], state["level"]) != (self._rate, self._level):
            return
        for metric, each in state["gates"].items():
            if metric in self._gates:
                for agent, held in each.items():
                    self._gates[metric][agent] = StreamGate.restored(self._rate, self._level, held)

    def _add(self, row: ResultRow) -> bool:
        result = orjson.loads(row.body)
        if result["outcome"] != "scored":
            return False
        gates, agent = self._gates[row.metric], bounded(str(result["agent"]))
        if agent not in gates and len(gates) >= MOST_AGENTS:
            agent = OTHER
        gate = gates.setdefault(agent, StreamGate(self._rate, self._level))
        was_on = gate.is_on
        if gate.add(float(row.success or 0)) and not was_on:
            _log.warning(
                "%s of agent %r passes less often than %g (gates.stream): evidence %.3g after %d results",
                row.metric,
                agent,
                self._rate,
                gate.e_value,
                gate.n,
            )
        return True

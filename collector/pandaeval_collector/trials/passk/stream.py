"""Gates for streams in a running collector: one for each watched metric and agent, looked at after every result."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from pandaeval_collector.analysis.stats.stream import StreamGate
from pandaeval_collector.base.instrument import Attributes
from pandaeval_collector.store import ResultRow
from pandaeval_otel.base.names import bounded

_log = logging.getLogger(__name__)

_STREAM = "pandaeval.stream"
MOST_AGENTS = 50
"""Of each metric; the others share a gate."""
OTHER = "__other__"


class LiveGates:
    """The gates of some metrics (``level.name``). Results without a verdict, revisions and what was assumed tell
    nothing new. On one event loop; :meth:`gauges` on any thread."""

    key = "stream_gates"

    def __init__(self, metrics: Sequence[str], rate: float, level: float) -> None:
        self._rate, self._level = rate, level
        self._gates: dict[str, dict[str, StreamGate]] = {metric: {} for metric in metrics}

    def take(self, rows: Sequence[ResultRow]) -> bool:
        """Takes in rows that were committed; whether any told something."""
        taken = False
        for row in rows:
            if row.metric in self._gates and row.revision == 1 and row.success is not None:
                taken = self._add(row) or taken
        return taken

    def gauges(self) -> Mapping[tuple[str, Attributes], float]:
        """Returns the evidence against each metric and agent, from 1/level on an alarm, whether it is one, and of how
        many results."""
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
        """Goes on from a state; begins anew where rate or level are others."""
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

"""Sums costs of runs and verdicts by session, user, agent and day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from pandaeval_collector.cli._output import print_list
from pandaeval_collector.show.view.texts import NONE, dollars

_MOST = 10
_KINDS = ("agent", "user", "session", "day")


@dataclass(slots=True)
class CostSum:
    """The cost of runs. ``usd``: ``None`` if unknown; ``unpriced``: runs or verdicts without a price."""

    runs: int = 0
    tokens: int = 0
    usd: float | None = None
    unpriced: int = 0

    def add(self, tokens: int, usd: float | None, unpriced: bool) -> None:
        self.runs += 1
        self.tokens += tokens
        self.unpriced += unpriced
        if usd is not None:
            self.usd = (self.usd or 0.0) + usd

    def __str__(self) -> str:
        if self.usd is None:
            return "unknown" if self.unpriced else NONE
        return f"{'at least ' if self.unpriced else ''}{dollars(self.usd)}"


@dataclass(slots=True)
class CostSums:
    sums: dict[tuple[str, str], CostSum] = field(default_factory=dict)
    judge: CostSum = field(default_factory=CostSum)

    def ran(self, facts: Mapping[str, Any]) -> None:
        day = datetime.fromtimestamp(facts["at"] / 1000, UTC).date().isoformat()
        for kind in _KINDS:
            name = day if kind == "day" else facts.get(kind)
            if name is not None:
                cost = self.sums.setdefault((kind, str(name)), CostSum())
                cost.add(sum(facts["tokens"]), facts.get("usd"), "unpriced" in facts)

    def judged(self, result: Mapping[str, Any]) -> None:
        if tokens := result.get("tokens"):
            usd = result.get("cost_usd") or None
            self.judge.add(tokens, usd, usd is None)

    def rows(self) -> Iterator[tuple[str, str, int, str, str]]:
        for kind in _KINDS:
            found = [(name, cost) for (of, name), cost in self.sums.items() if of == kind]
            for name, cost in sorted(found, key=lambda each: (-(each[1].usd or 0.0), each[0]))[:_MOST]:
                yield kind, name, cost.runs, f"{cost.tokens:,}", str(cost)


def print_costs(costs: CostSums, out: Console) -> None:
    if any(cost.tokens or cost.usd for cost in costs.sums.values()):
        print_list(("by", "name", "runs", "tokens", "cost"), costs.rows(), "Cost of the runs", out)
    if costs.judge.runs:
        out.print(f"Judge: {costs.judge.tokens:,} tokens, {costs.judge}")

"""What an evaluation run is to do, as it is asked for and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import orjson

from pandaeval_collector.judge.selection import included
from pandaeval_collector.store import Store
from pandaeval_collector.store.wanted import Wanted


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a run is asked to do. ``metrics``: keys, sorted; ``wanted``: which traces, with session metrics also the
    sessions of these; ``model``: the judge, ``None``: as configured; ``sample``: share of sessions and of traces
    without one; ``weights``: of signals, override the configured ones; ``emit``: results are exported; ``decided``:
    when traces were decided, in the store's calendar; ``budget_usd``: no batch begins once judges have cost it."""

    metrics: tuple[str, ...]
    wanted: Wanted = field(default_factory=Wanted)
    model: str | None = None
    sample: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    emit: bool = False
    name: str = ""
    decided: tuple[float, float] | None = None
    budget_usd: float | None = None

    @property
    def of_sessions(self) -> bool:
        """Whether sessions are scored, which takes all of their traces."""
        return any(key.startswith("session.") for key in self.metrics)

    @property
    def of_traces(self) -> bool:
        return any(key.startswith(("trace.", "turn.")) for key in self.metrics)

    def to_json(self) -> bytes:
        """Writes the specification as JSON; equal specifications give equal bytes."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, body: bytes) -> RunSpec:
        held = orjson.loads(body)
        held["metrics"], held["wanted"] = tuple(held["metrics"]), _wanted(held["wanted"])
        held["decided"] = None if held["decided"] is None else tuple(held["decided"])
        return cls(**held)

    def decided_in(self, after: float, until: float) -> RunSpec:
        """Returns the same specification for traces that were decided between two times."""
        return replace(self, decided=(after, until))


def _wanted(held: dict[str, Any]) -> Wanted:
    return Wanted(**held | {"attribute": tuple(held.get("attribute") or ())})


# Which traces a run is about.
Chosen = tuple[int, int, str]
"""Number of a trace, number of its session (0: none), and the id by which a sample is drawn."""


def choose(store: Store, spec: RunSpec, after: int, upto: int) -> tuple[list[Chosen], int]:
    """Returns a page of the traces with numbers above ``after`` that a run scores, and where the page ends. Blocks."""
    rows, last = store.runs.chosen(spec.wanted, after, upto, spec.decided)
    return [
        (no, session, session_id or trace_id.hex())
        for no, session, trace_id, session_id in rows
        if session or spec.of_traces
    ], last


def sampled(found: Sequence[Chosen], spec: RunSpec) -> list[Chosen]:
    """Returns the traces in the sample: sessions whole, and the same ones as live."""
    return [each for each in found if included(each[2], spec.sample)]

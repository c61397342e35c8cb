"""What an evaluation run is to do, as it is asked for and stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import orjson

from pandaeval_collector.judge.selection import included
from pandaeval_collector.store import Store
from pandaeval_collector.store.listed import Wanted


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
        wanted = held["wanted"]
        held["wanted"] = Wanted(**wanted | {"attribute": tuple(wanted.get("attribute") or ())})
        held["metrics"] = tuple(held["metrics"])
        held["decided"] = None if held["decided"] is None else tuple(held["decided"])
        return cls(**held)


Chosen = tuple[int, int]
"""Number of a trace, and number of its session (0: none)."""


def choose(store: Store, spec: RunSpec, after: int, upto: int) -> tuple[list[Chosen], int]:
    """Returns a page of the traces with numbers above ``after`` that a run scores, and where the page ends: those in
    the sample, sessions whole, and the same ones as live. Blocks."""
    rows, last = store.runs.chosen(spec.wanted, after, upto, spec.decided)
    return [
        (no, session)
        for no, session, trace_id, session_id in rows
        if (session or spec.of_traces) and included(session_id or trace_id.hex(), spec.sample)
    ], last

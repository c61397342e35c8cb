"""The request of an evaluation run, and its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import Config, MetricNames
from pandaeval_collector.judge.selection import included
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store import StoreAccess
from pandaeval_collector.store.listed import Wanted

_SIGNALS = ("confidence", "loop_detection", "tool_correctness", "coherence")


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run's request.

    ``metrics``: sorted keys. ``wanted``: trace filter, for session metrics also their sessions. ``model``: judge,
    ``None`` as configured. ``sample``: share of sessions and single traces. ``weights``: of signals. ``emit``: export
    results. ``decided``: store calendar interval. ``budget_usd``: limit of judge costs before a batch. ``about``: only
    these traces, or sessions below zero. ``ruling``: to try.
    """

    metrics: tuple[str, ...]
    wanted: Wanted = field(default_factory=Wanted)
    model: str | None = None
    sample: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    emit: bool = False
    name: str = ""
    decided: tuple[float, float] | None = None
    budget_usd: float | None = None
    about: tuple[int, ...] = ()
    ruling: Mapping[str, Any] | None = None

    @property
    def of_sessions(self) -> bool:
        """Whether sessions are scored, with all their traces."""
        return any(key.startswith("session.") for key in self.metrics)

    @property
    def of_traces(self) -> bool:
        return any(key.startswith(("trace.", "turn.")) for key in self.metrics)

    def to_json(self) -> bytes:
        """Encode equal specifications as equal bytes."""
        return orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)

    @classmethod
    def from_json(cls, body: bytes) -> RunSpec:
        held = orjson.loads(body)
        wanted = held["wanted"]
        held["wanted"] = Wanted(**wanted | {"attribute": tuple(wanted.get("attribute") or ())})
        held["metrics"] = tuple(held["metrics"])
        held["decided"] = None if held["decided"] is None else tuple(held["decided"])
        held["about"] = tuple(held.get("about", ()))
        return cls(**held)


Chosen = tuple[int, int]
"""Number of a trace, and number of its session (0: none)."""


def choose(store: StoreAccess, spec: RunSpec, after: int, upto: int) -> tuple[list[Chosen], int]:
    """Return a page of sampled traces after ``after``, and its end.

    Samples whole sessions, as live scoring does. Blocks.
    """
    rows, last = store.runs.chosen(spec.wanted, after, upto, spec.decided, spec.about)
    return [
        (no, session)
        for no, session, trace_id, session_id in rows
        if (session or spec.of_traces) and included(session_id or trace_id.hex(), spec.sample)
    ], last


def metric_keys(config: Config, names: Sequence[str]) -> tuple[str, ...]:
    """Return the sorted keys of ``names``. Raises ``UserError`` for an unknown name."""
    known = MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())
    unknown = [name for name in names if not known.select(name)]
    if unknown:
        raise UserError(f"{unknown[0]}: {known.unknown(unknown[0])}")
    return tuple(sorted({key for name in names for key in known.select(name)}))


def check(config: Config, spec: RunSpec) -> None:
    """Raise ``UserError`` for a run that cannot be executed."""
    unknown = sorted(set(spec.weights) - set(_SIGNALS))
    if unknown:
        raise UserError(f"signal_weights: {unknown[0]} is none of {', '.join(_SIGNALS)}")
    weights = _weights(config, spec)
    if len(weights) == len(_SIGNALS) and not any(weights.values()):
        raise UserError("signal_weights: all weights are 0; at least one signal must count")
    asking = _asking(config, spec)
    if asking and spec.model is None and config.judge.model is None:
        raise UserError(_asks(asking, spec, "name a model (--model), or set judge.model"))


class NotAllowedError(UserError):
    """Only the owner of the configuration may start this run."""


def check_asked(config: Config, spec: RunSpec, dry: bool) -> None:
    """Raise :class:`NotAllowedError` if an API caller redirects traces, or spends without a limit."""
    judge = config.judge
    known = {*judge.models.values(), *judge.fallbacks, *filter(None, [judge.model])}
    if spec.model is not None and spec.model not in known:
        models = ", ".join(sorted(known)) or "none"
        raise NotAllowedError(
            f"model: {spec.model} is none that this collector's configuration names ({models}); to allow it, name it "
            "in judge.fallbacks or judge.models"
        )
    asking = _asking(config, spec)
    capped = (spec.budget_usd, judge.daily_usd) != (None, None)
    if asking and not (dry or capped):
        raise NotAllowedError(_asks(asking, spec, "give a budget (--budget USD; budget_usd), or set judge.daily_usd"))


def judged(config: Config, spec: RunSpec) -> bool:
    return bool(_asking(config, spec))


def _asking(config: Config, spec: RunSpec) -> list[str]:
    metrics = registry(config.metrics.modules)
    return [key for key in spec.metrics if key in metrics and metrics[key].kind == "llm"]


def _asks(asking: Sequence[str], spec: RunSpec, cure: str) -> str:
    error_text = f"{', '.join(asking)}: asks a judge; {cure}"
    names = {key.partition(".")[2] for key in asking}
    meant = [key for key in spec.metrics if key not in asking and key.partition(".")[2] in names]
    return f"{error_text}, or write {', '.join(meant)} for that level alone" if meant else error_text


def config_of(config: Config, spec: RunSpec) -> Config:
    """Return the configuration of a run, which judges each trace once."""
    judge: dict[str, Any] = {
        "model": (spec.model or config.judge.model) if judged(config, spec) else None,
        "sample": 1.0,
        "only": {},
        "delay": 0.0,
    }
    if spec.model is not None:
        judge["models"] = {}
    return config.model_copy(
        update={
            "judge": config.judge.model_copy(update=judge),
            "metrics": config.metrics.model_copy(update={"enabled": spec.metrics}),
            "session": config.session.model_copy(update={"weights": _weights(config, spec)}),
        }
    )


def _weights(config: Config, spec: RunSpec) -> dict[str, float]:
    return {**{str(name): weight for name, weight in config.session.weights.items()}, **spec.weights}

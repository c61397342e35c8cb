"""``--where``: selects traces, as ``agent=desk,status=error,time=2026-01-01..2026-01-31``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.cli._output import notice
from pandaeval_collector.cli._where_text import conditions_of, time_range_of, wrong
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_lab.cli._stages import EvaluationOutcome, Stage
from pandaeval_otel.model import Trace

NAMED = ("agent", "service", "environment", "user", "session", "status")
"""Properties with a single name per trace."""
_NAMES = (*NAMED, "label", "attribute")
_KEYS = (*_NAMES, "time")
HELP = "Keep only matching traces, such as agent=NAME; repeatable."
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on traces: allowed values per key, and ranges of the start in Unix nanoseconds (end exclusive)."""

    text: str
    wanted: Mapping[str, frozenset[str]] = field(default_factory=dict)
    times: tuple[tuple[int, int], ...] = ()

    def fits(self, names: Mapping[str, Collection[str | None]], start_ns: int) -> bool:
        named = all(not values.isdisjoint(names[key]) for key, values in self.wanted.items())
        return named and (not self.times or any(first <= start_ns < end for first, end in self.times))


def names_in(run: ScoredTrace, trace: Trace) -> dict[str, Collection[str | None]]:
    of_trace = {"user": "user_id", "session": "session_id"}
    names = {key: (getattr(trace, of_trace.get(key, key)),) for key in NAMED}
    pairs = () if run.listed is None else run.listed.attributes
    return {**names, "label": [each.label for each in run.results], "attribute": pairs}


def attribute_keys(where: Where | None) -> list[str]:
    return sorted({pair.partition("=")[0] for pair in where.wanted.get("attribute", ())} if where else ())


def parse_where(written: Iterable[str]) -> Where | None:
    """Return the condition, or ``None``. Raises ``UserError``."""
    found: dict[str, list[str]] = {}
    texts = [text.strip() for text in written]
    for key, value in (condition for text in texts for condition in conditions_of(text, _KEYS)):
        found.setdefault(key, []).append(value)
    if not found:
        return None
    times = tuple(map(time_range_of, found.pop("time", ())))
    return Where(", ".join(texts), {key: frozenset(values) for key, values in found.items()}, times)


class TraceFilter(Stage):
    def __init__(self, where: Where) -> None:
        self.where = where
        self.chosen = self.left_out = 0
        self._known: dict[str, set[str]] = {key: set() for key in _NAMES if key != "status"}

    def keep(self, run: ScoredTrace) -> bool:
        fits = True
        if run.trace is not None:
            names = names_in(run, run.trace)
            for key, known in self._known.items():
                if len(known) < _MOST_NAMES:
                    known.update(filter(None, names[key]))
            fits = self.where.fits(names, run.trace.start_ns)
        self.chosen, self.left_out = self.chosen + fits, self.left_out + (not fits)
        return fits

    def conclude(self) -> Iterable[Result]:
        """Raise ``UserError`` if no trace matches because a name is unknown."""
        if self.chosen or not self.left_out:
            return ()
        for key, known in self._known.items():
            for name in sorted(self.where.wanted.get(key, frozenset()) - known):
                raise wrong(f"{key}={name}", f"no trace in the input has this {key}")
        return ()

    def about(self) -> Mapping[str, Any]:
        return {"where": self.where.text}

    @property
    def notice(self) -> str:
        lead = f"--where {self.where.text}: "
        if self.chosen or not self.left_out:
            return f"{lead}{self.left_out} of {self.chosen + self.left_out} runs were excluded"
        agents, services = (", ".join(sorted(self._known[key])[:10]) for key in ("agent", "service"))
        return f"{lead}no trace in the input matches (agents: {agents}; services: {services})"

    def finish(self, outcome: EvaluationOutcome) -> None:
        if not (outcome.is_json and self.chosen):
            notice(self.notice)

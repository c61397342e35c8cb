"""Options of a run, and the resulting request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import FILTERS, OUTCOMES, STATUSES, TIMES, Filter, in_place_of
from pandaeval_collector.base.section import parse_moment
from pandaeval_collector.cli._options import given_by, option
from pandaeval_collector.cli._output import RunFormat

_METRICS = option("Metrics to run, separated by commas, such as tool_loop, response.", metavar="A,B")
_SAMPLE = option(
    "Share of sessions (or single traces) to score. Equal shares select the same sessions.",
    min=0.0,
    max=1.0,
    metavar="0..1",
)
_MODEL = "Judge model that the configuration names; default: judge.model and judge.models."
_BUDGET = option("At this cost, stop before the next batch of 8 traces.", min=0.0, metavar="USD")
_EMIT = option("Also send the results to the configured exporters, with the run ID.", "--emit")


Format = Annotated[RunFormat, option("Output format: table, or one JSON object per line.", "--format")]
_OUTCOME: Any = Literal[tuple(OUTCOMES)]
_STATUS: Any = Literal[tuple(STATUSES)]
_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""
_TYPES: dict[str, Any] = {
    "time": str | None,
    "text": str | None,
    "flag": bool | None,
    "status": _STATUS | None,
    "outcome": _OUTCOME | None,
    "pairs": list[str] | None,
    "number": float | None,
}


def filtered(filters: Iterable[Filter] = FILTERS) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces parameter ``filters`` by an option per filter. Converts times to RFC 3339."""

    def given(**options: Any) -> dict[str, Any]:
        found = {name: value for name, value in options.items() if value not in (None, [])}
        return {name: _time(value, f"--{name}") if name in TIMES else value for name, value in found.items()}

    return in_place_of("filters", {each.name: (_option(each), None) for each in filters}, given)


def _option(each: Filter) -> Any:
    help_text, metavar = each.meaning, None
    if each.kind == "time":
        help_text = f"{help_text}: RFC 3339, or an age such as 7d or 2h."
    elif each.kind == "pairs":
        help_text, metavar = f"{help_text} Repeatable.", "KEY=VALUE"
    declared = option(help_text, each.option or f"--{each.name}", metavar=metavar, show_default=False)
    return _ANNOTATED[_TYPES[each.kind], declared]


@dataclass(frozen=True, slots=True)
class RunOptions:
    metrics: Annotated[str, _METRICS]
    model: Annotated[str | None, option(_MODEL)] = None
    sample: Annotated[float, _SAMPLE] = 1.0
    budget: Annotated[float | None, _BUDGET] = None
    emit: Annotated[bool, _EMIT] = False
    name: Annotated[str, option("Display name of the run.")] = ""

    def body(self, filters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the API request for the traces of ``filters``."""
        return {
            "metrics": [each.strip() for each in self.metrics.split(",") if each.strip()],
            "filters": dict(filters),
            "model": self.model,
            "sample": self.sample,
            "emit": self.emit,
            "name": self.name,
            "budget_usd": self.budget,
        }


run_options = given_by("run", RunOptions)
"""Gives a command the options of a run, in place of its parameter ``run``."""


def _time(text: str, option: str) -> str:
    try:
        return parse_moment(text).isoformat()
    except ValueError as error:
        raise UserError(f"{option} {text}: write a time (RFC 3339) or an age such as 7d or 2h") from error

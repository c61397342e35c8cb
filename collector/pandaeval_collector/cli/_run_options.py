"""The options that say what a run is about, and the request that they make."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from pandaeval_collector.base.filters import FILTERS, OUTCOMES, STATUSES, Filter

Metrics = Annotated[
    str, typer.Option(help="Names of metrics, with commas, such as tool_loop, response.", metavar="A,B")
]
Model = Annotated[str | None, typer.Option(help="Who judges; else as configured.")]
Sample = Annotated[
    float, typer.Option(min=0.0, max=1.0, metavar="0..1", help="Share of the sessions, the same ones each time.")
]
Weights = Annotated[str | None, typer.Option(metavar="NAME=W,..", help="Weights of signals in session metrics.")]
Emit = Annotated[bool, typer.Option("--emit", help="Results leave like live ones, with the run's id.")]
Budget = Annotated[
    float | None,
    typer.Option(min=0.0, metavar="USD", help="What judges may cost; then no further batch of traces is begun."),
]
Name = Annotated[str, typer.Option(help="A name, for people.")]


class RunFormat(StrEnum):
    """How it is printed."""

    table = "table"
    json = "json"


Format = Annotated[RunFormat, typer.Option("--format", help="table, or json: one object a line.")]
TABLE = RunFormat.table
_OUTCOME: Any = StrEnum("Outcome", list(OUTCOMES))  # type: ignore[misc]
_STATUS: Any = StrEnum("Status", list(STATUSES))  # type: ignore[misc]
_ANNOTATED: Any = Annotated
"""For types that are put together at run time."""
_TYPES: dict[str, Any] = {
    "time": str | None,
    "text": str | None,
    "flag": bool | None,
    "status": _STATUS | None,
    "outcome": _OUTCOME | None,
    "pairs": list[str] | None,
}


def filtered(filters: Iterable[Filter] = FILTERS) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command an option for each filter, in place of its parameter ``filters``, which holds what was given by
    the names of the filters."""
    options = {each.name: _option(each) for each in filters}

    def made(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            said = {name: given.pop(name) for name in options}
            command(**given, filters={name: value for name, value in said.items() if value not in (None, [])})

        own = inspect.signature(command, eval_str=True).parameters.values()
        # What has no default comes first, whatever stands where in the command.
        first = [each for each in own if each.default is each.empty and each.name != "filters"]
        last = [each for each in own if each.default is not each.empty]
        called.__signature__ = inspect.Signature([*first, *options.values(), *last])  # type: ignore[attr-defined]
        called.__annotations__ = {}
        return called

    return made


def _option(each: Filter) -> inspect.Parameter:
    told, metavar = each.meaning, None
    if each.kind == "time":
        told = f"{told}: RFC 3339, or how long ago, such as 7d or 2h."
    elif each.kind == "pairs":
        told, metavar = f"{told} May be given several times.", "KEY=VALUE"
    option = typer.Option(each.option or f"--{each.name}", help=told, metavar=metavar, show_default=False)
    annotation = _ANNOTATED[_TYPES[each.kind], option]
    return inspect.Parameter(each.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)


def request(
    *,
    metrics: str,
    model: str | None,
    sample: float,
    signal_weights: str | None,
    emit: bool,
    name: str,
    filters: dict[str, Any],
    budget: float | None = None,
) -> dict[str, Any]:
    """The body of a run. Raises ``UserError`` for what is not written as it should be."""
    named = [each.strip() for each in metrics.split(",") if each.strip()]
    times = api_times(filters)
    body: dict[str, Any] = {
        "metrics": named,
        "filters": {**filters, **times},
        "model": model,
        "sample": sample,
        "emit": emit,
    }
    return {**body, "name": name, "budget_usd": budget, "signal_weights": _weights(signal_weights)}


def api_times(filters: Mapping[str, Any]) -> dict[str, str]:
    """The options ``since`` and ``until`` among ``filters`` as the API takes them, RFC 3339. Raises ``UserError``."""
    return {key: _time(filters[key], f"--{key}") for key in ("since", "until") if key in filters}


def _time(text: str, option: str) -> str:
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.base.section import parse_duration

    try:
        return datetime.fromtimestamp(time.time() - parse_duration(text), UTC).isoformat()
    except ValueError:
        pass  # a time, then
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: write a time (RFC 3339) or how long ago, such as 7d or 2h") from error
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).isoformat()


def _weights(text: str | None) -> dict[str, float]:
    from pandaeval_collector.base.errors import UserError

    found: dict[str, float] = {}
    for part in (text or "").split(","):
        name, equals, value = part.partition("=")
        if not part.strip():
            continue
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise UserError(f"--signal-weights {part.strip()}: write signal=number") from error
        if not equals:
            raise UserError(f"--signal-weights {part.strip()}: write signal=number")
    return found

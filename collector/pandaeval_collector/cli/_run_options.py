"""The options that say what a run is about, and the request that they make."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

Metrics = Annotated[
    str, typer.Option(help="Names of metrics, with commas, such as tool_loop, response.", metavar="A,B")
]
Since = Annotated[
    str | None, typer.Option(help="Traces that started then or later: RFC 3339, or how long ago, such as 7d or 2h.")
]
Until = Annotated[str | None, typer.Option(help="Traces that started before then; likewise.")]
Agent = Annotated[str | None, typer.Option(help="Name of the root agent.")]
Service = Annotated[str | None, typer.Option(help="service.name of the application.")]
Environment = Annotated[str | None, typer.Option(help="Deployment environment.")]
User = Annotated[str | None, typer.Option(help="Id of the user.")]
SessionId = Annotated[str | None, typer.Option("--session", help="Id of the session.")]
Failed = Annotated[bool | None, typer.Option("--failed/--not-failed", help="Whether a live result failed.")]
WithMetric = Annotated[str | None, typer.Option(help="With a live result of this metric.")]
WithOutcome = Annotated[str | None, typer.Option(help="With a live result that is scored, assumed or unscored.")]
WithLabel = Annotated[str | None, typer.Option(help="With a live result of this label.")]
WithText = Annotated[str | None, typer.Option(help="What stands in the beginning of input or answer.")]
Model = Annotated[str | None, typer.Option(help="Who judges; else as configured.")]
Sample = Annotated[
    float, typer.Option(min=0.0, max=1.0, metavar="0..1", help="Share of the sessions, the same ones each time.")
]
Weights = Annotated[str | None, typer.Option(metavar="NAME=W,..", help="Weights of signals in session metrics.")]
Emit = Annotated[bool, typer.Option("--emit", help="Results leave like live ones, with the run's id.")]
Name = Annotated[str, typer.Option(help="A name, for people.")]


class Format(StrEnum):
    """How it is printed."""

    table = "table"
    json = "json"


def request(
    *,
    metrics: str,
    model: str | None,
    sample: float,
    signal_weights: str | None,
    emit: bool,
    name: str,
    since: str | None,
    until: str | None,
    **filters: Any,
) -> dict[str, Any]:
    """The body of a run. Raises ``UserError`` for what is not written as it should be."""
    named = [each.strip() for each in metrics.split(",") if each.strip()]
    times = {"since": _time(since, "--since"), "until": _time(until, "--until")}
    given = {key: value for key, value in {**times, **filters}.items() if value is not None}
    body = {"metrics": named, "filters": given, "model": model, "sample": sample, "emit": emit, "name": name}
    return {**body, "signal_weights": _weights(signal_weights)}


def _time(text: str | None, option: str) -> str | None:
    from pandaeval_collector.errors import UserError
    from pandaeval_collector.section import parse_duration

    if text is None:
        return None
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
    from pandaeval_collector.errors import UserError

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

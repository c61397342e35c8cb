"""``pandaeval traces``, ``sessions`` and ``failures``: what a collector has found, as lists, and one of them shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal
from urllib.parse import quote

import typer
from typer.core import TyperGroup

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.cli import _listings as listings
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._run_place import Place, placed
from pandaeval_collector.store.failures import Standing

_Most = Annotated[int, typer.Option(min=1, help="At most so many.")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, as the list has it.")]
_Level: Any = Literal[tuple(SEVERITIES)]


class _Lists(TyperGroup):
    """Takes ``pandaeval traces --since 2h`` for ``pandaeval traces list --since 2h``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["list", *args])


traces = typer.Typer(help="Agents' traces of a collector or a store, worst first.", cls=_Lists)
sessions = typer.Typer(help="Sessions of a collector or a store, worst first.", cls=_Lists)
failures = typer.Typer(help="Failures by root cause, gravest first.", cls=_Lists)


@traces.command("list")
@given.filtered()
@placed
def list_traces(
    filters: dict[str, Any],
    limit: _Most = 50,
    newest: Annotated[bool, typer.Option("--newest", help="Newest first.")] = False,
    format_: given.Format = "table",
    *,
    place: Place,
) -> None:
    """List traces with their worst result, worst first."""
    asked = {**filters, **given.api_times(filters), "order": "newest" if newest else "worst"}
    with place.looking() as api:
        listings.show([*api.pages("/traces", limit, **asked)], listings.TRACES, format_)


@sessions.command("list")
@given.filtered()
@placed
def list_sessions(filters: dict[str, Any], limit: _Most = 50, format_: given.Format = "table", *, place: Place) -> None:
    """List sessions, and traces without one, with their worst result, worst first."""
    asked = {**filters, **given.api_times(filters)}
    with place.looking() as api:
        listings.show([*api.pages("/sessions", limit, **asked)], listings.SESSIONS, format_)


@failures.command("list")
@given.filtered()
@placed
def list_failures(
    filters: dict[str, Any],
    severity: Annotated[_Level | None, typer.Option(help="Of this severity or graver.")] = None,
    state: Annotated[Standing, typer.Option(help="What people say of it; open: new or known.")] = "open",
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many incidents.")] = 50,
    format_: given.Format = "table",
    *,
    place: Place,
) -> None:
    """List what failed by root cause."""
    asked = {**filters, **given.api_times(filters), "severity": severity, "state": state, "limit": limit}
    with place.looking() as api:
        listings.show(api.get("/incidents", **asked)["incidents"], listings.INCIDENTS, format_)


def _add_show(group: typer.Typer, kind: str, tell: Callable[[listings.Row], None], text: str) -> None:
    """Adds the command that shows one of a list. ``text``: the command's help."""

    @group.command("show", help=text)
    @placed
    def show(id_: _Id, format_: given.Format = "table", *, place: Place) -> None:
        with place.looking() as api:
            row = api.get(f"/{kind}/{quote(id_, safe='')}")
        listings.show_one(row, tell, format_)


_add_show(traces, "traces", listings.tell_trace, "Show one trace: what was asked and answered, its calls, its results.")
_add_show(sessions, "sessions", listings.tell_session, "Show one session: its results and its traces in order.")
_add_show(
    failures,
    "incidents",
    listings.tell_incident,
    "Show one of them: its runs, by agent, version and model, the newest.",
)

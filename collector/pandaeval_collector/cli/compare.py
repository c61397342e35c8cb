"""``pandaeval compare``: compares the runs that two filters select."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.filters import FILTERS, of_runs
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._options import option
from pandaeval_collector.cli._output import Listing, safe, show, show_one
from pandaeval_collector.cli._run_place import ApiClient, with_api_or_store
from pandaeval_collector.cli._where_text import api_filters
from pandaeval_collector.show.view import compared as words

_RATES = Listing(
    (
        "metric",
        ("a", lambda row: words.share_text(row["a"])),
        ("b", lambda row: words.share_text(row["b"])),
        ("b - a", words.change_text),
        ("p", words.p_text),
    ),
    "no runs match",
)
_INCIDENTS = Listing(
    (*("id", "trend", "a", "b"), ("p", words.p_text), ("incident", words.incident_text)), says_why=True
)
_MEASURES = Listing(
    (
        ("by run", lambda row: words.measure_texts(row)[0]),
        ("a", lambda row: words.measure_texts(row)[1]),
        ("b", lambda row: words.measure_texts(row)[2]),
    )
)


@with_api_or_store
def compare(
    where: Annotated[
        list[str], option("Filter of a group, such as time=7d.. or agent=desk. Give two.", metavar="KEY=VALUE,..")
    ],
    metric: Annotated[str | None, option("Of the rates, show only this metric.")] = None,
    format_: given.Format = "table",
    *,
    api: ApiClient,
) -> None:
    """Compare two groups of runs that filters select.

    The first --where selects group a, the second selects group b. Intervals are 95 % confidence intervals, and p is the
    p-value of Fisher's exact test.
    """
    if len(where) != 2:
        raise UserError("give --where twice, such as --where time=14d..7d --where time=7d..")
    groups = [api_filters(text, of_runs()) for text in where]
    asked = {f"{side}.{key}": value for side, group in zip("ab", groups, strict=True) for key, value in group.items()}
    found = api.get("/compare", metric=metric, **asked)
    show_one(found, _tell, format_)
    if format_ == "table":
        for side, group in zip("ab", groups, strict=True):
            typer.echo(f"{found[side]['runs']:,} runs of {side}: {safe(_listing(group, api.place))}")


def _tell(found: Mapping[str, Any]) -> None:
    """Print the tables of a comparison."""
    changed = [row for row in found["incidents"] if row["trend"] != "same"]
    for rows, listing in ((found["rates"], _RATES), (changed, _INCIDENTS), (found["measures"], _MEASURES)):
        show(rows, listing)
        typer.echo()


def _listing(group: Mapping[str, Any], place: Sequence[str]) -> str:
    """Return the command that lists the runs of a group."""
    command = ["pandaeval", "traces", "list"]
    for each in FILTERS:
        values = group.get(each.name, [])
        for value in values if isinstance(values, list) else [values]:
            command += [each.option or f"--{each.name}", str(value)]
    return shlex.join([*command, *place])

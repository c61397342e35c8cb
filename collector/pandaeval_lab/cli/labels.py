"""``pandaeval labels``: imports, suggests and exports people's verdicts."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli import _run_options as given
from pandaeval_collector.cli._config import opened_store
from pandaeval_collector.cli._options import argument, file_argument, option, output_option
from pandaeval_collector.cli._output import Listing, RunFormat, message, output_file, print_table, show
from pandaeval_collector.cli._person import user_name
from pandaeval_collector.cli._run_place import ApiClient, with_collector_api
from pandaeval_collector.config import Config
from pandaeval_collector.labels.queue import Queue, draw, metric_to_label, unclear_first
from pandaeval_collector.labels.rates import pass_rates
from pandaeval_collector.show.view.texts import NO_VALUE, interval, number
from pandaeval_collector.store import people
from pandaeval_lab.cli._names import names_of, stored
from pandaeval_lab.labels.files import read_labels, row_of, written
from pandaeval_otel.wire.labels import HumanLabel

_RATES = Listing(
    (
        "metric",
        ("agent", lambda row: row["agent"] or NO_VALUE),
        ("drawn labels", "n"),
        ("judge's pass rate", lambda row: number(row["judge"], ".3f")),
        ("undecided", lambda row: number(row["undecided"], ".3f")),
        ("corrected", lambda row: number(row["rate"]["value"], ".3f") if row["rate"] else "unknown"),
        (
            "95 % interval",
            lambda row: interval(row["rate"]["low"], row["rate"]["high"], ".3f") if row["rate"] else row["why"],
        ),
    ),
    "no corrected pass rate: no judged run has a label yet (labels of next --unclear do not count)",
    "Pass rates, corrected by human labels",
)

labels = typer.Typer(help="Import, export and draw human labels.", no_args_is_help=True)


@labels.command("import")
@stored
def import_(
    file: Annotated[
        Path,
        file_argument("CSV or JSON lines, one label per line."),
    ],
    *,
    settings: Config,
) -> None:
    """Import human labels; if a line is invalid, import none.

    Columns: trace_id or session_id, metric, and label (pass or fail) or score (0 to 1). Optional: annotator, time,
    comment, probability. You can import the same file again."""
    found = read_labels(file, names_of(settings))
    with opened_store(settings) as connection:
        check_known(connection, found.labels)
        connection.execute("BEGIN IMMEDIATE")
        fates = people.put(connection, found.labels, time.time())
        connection.execute("COMMIT")
        typer.echo(f"{fates['new']} new, {fates['changed']} changed, {fates['known']} as before")
        if found.empty:
            typer.echo(f"{found.empty} rows without a label skipped")
        if found.ignored:
            typer.echo(f"ignored columns: {', '.join(found.ignored[:10])}")
        _print_rates(connection)


def check_known(connection: sqlite3.Connection, labels: list[HumanLabel]) -> None:
    """Raise ``UserError`` for labels of runs that are not in the store."""
    unknown = [each for each in labels if not people.is_known(connection, each)]
    if unknown:
        named = ", ".join(list(dict.fromkeys(each.unit for each in unknown))[:5])
        raise UserError(
            f"{len(unknown)} of {len(labels)} labels refer to runs that are not in this store: {named}\n"
            "No label was imported; remove these lines from the file."
        )


@labels.command("next")
@stored
def next_(
    number: Annotated[int, option("Number of runs to draw.", "--n", min=1, max=10_000)] = 20,
    metric: Annotated[str, option("Judged metric to label. Required if there are several.")] = "",
    agent: Annotated[str, option("Draw only runs of this agent.")] = "",
    unclear: Annotated[
        bool, option("Draw unclear and disputed runs first. Rates ignore their labels.", "--unclear")
    ] = False,
    out: Annotated[Path | None, output_option("Write a CSV or .jsonl file to fill in and import.", "--out")] = None,
    *,
    settings: Config,
) -> None:
    """Draw judged runs for people to label.

    The draw is random, and prefers runs close to the judge's threshold. With --unclear, the draw is not random. The
    command hides the judge's verdicts, so that they do not influence you."""
    with opened_store(settings) as connection:
        key = metric_to_label(connection, metric, names_of(settings))
        connection.execute("BEGIN IMMEDIATE")
        if unclear:
            queue = unclear_first(connection, key, agent, number)
        else:
            queue = draw(connection, key, agent, number, time.time())
        connection.execute("COMMIT")
        _print_queue(key, queue)
    if out is not None and queue.drawn:
        id_ = "session_id" if key.startswith("session.") else "trace_id"
        rows = [
            {"session_id": each.run.session, id_: each.run.unit, "metric": key, "probability": each.probability}
            for each in queue.drawn
        ]
        with output_file(out) as target:
            target.write(written(rows, out))
        typer.echo(f"Fill in label (pass or fail), then: pandaeval labels import {out}")


@labels.command("export")
@stored
def export(
    out: Annotated[
        Path | None, output_option("Write to this CSV or .jsonl file; default: CSV to standard output.", "--out")
    ] = None,
    *,
    settings: Config,
) -> None:
    """Export all labels, in the format of import."""
    with opened_store(settings) as connection:
        rows = [row_of(each) for each in people.labels(connection)]
    with output_file(out) as target:
        target.write(written(rows, out))


@labels.command("dismiss")
@with_collector_api
def dismiss(
    metric: Annotated[str, argument("Metric of the finding, such as trace.response.")],
    trace: Annotated[str, option("ID of the trace. For a turn, TRACE_ID:SPAN_ID.", metavar="ID")] = "",
    session: Annotated[str, option("ID of the session.", metavar="ID")] = "",
    comment: Annotated[str, option("Explanation why the finding is false.")] = "",
    undo: Annotated[bool, option("Undo the dismissal, so that the finding counts again.", "--undo")] = False,
    *,
    api: ApiClient,
) -> None:
    """Dismiss a false finding of code. It then counts nowhere.

    The command needs a running collector. Give --trace or --session."""
    about = {"trace_id": trace or None, "session_id": session or None, "metric": metric}
    api.post("/dismissals", {**about, "annotator": user_name(), "comment": comment, "undone": undo})
    message(f"{metric}: the finding counts again" if undo else f"{metric}: dismissed; to undo, add --undo")


@labels.command("rates")
@stored
def rates(format_: given.Format = "table", *, settings: Config) -> None:
    """Show corrected pass rates by metric and agent."""
    with opened_store(settings) as connection:
        _print_rates(connection, format_)


def _print_queue(metric: str, queue: Queue) -> None:
    if not queue.drawn:
        typer.echo(f"no judged run without a label ({metric})")
        return
    kind = "sessions" if metric.startswith("session.") else "traces"
    rows = [
        (run.unit, run.session or NO_VALUE, run.agent or NO_VALUE, f"pandaeval {kind} show {run.unit}")
        for run in (each.run for each in queue.drawn)
    ]
    print_table(("trace or session", "session", "agent", "show it with"), rows)
    typer.echo(f"{len(rows)} of {queue.waiting} judged runs without a label, {queue.labelled} with one ({metric})")


def _print_rates(connection: sqlite3.Connection, format_: RunFormat = "table") -> None:
    connection.execute("BEGIN")
    found = pass_rates(connection)
    connection.execute("COMMIT")
    show([{**asdict(each), "why": each.why or None} for each in found], _RATES, format_)

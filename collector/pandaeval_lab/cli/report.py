"""``pandaeval report``: the HTML report of what a collector has scored, also while it runs; and that of a run over
files."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

import typer
from google.protobuf.message import DecodeError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result, now
from pandaeval_collector.base.runtime.version import installed_version
from pandaeval_collector.base.section import parse_duration
from pandaeval_collector.cli._config import StoreConfig, given
from pandaeval_collector.cli._options import output_option
from pandaeval_collector.cli._output import console, many, progress
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.show.report.detail import stored_trace
from pandaeval_collector.show.report.index import facts_of
from pandaeval_collector.store.connection import FILE_NAME, TooSlowError
from pandaeval_collector.store.failures import Failure
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_lab.cli._inputs import READ_LIMIT_S, stored_rows
from pandaeval_lab.cli._names import config_with_trials
from pandaeval_lab.cli._stored import stored
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._where import HELP as WHERE
from pandaeval_lab.cli._where import NAMED, Where, parse_where
from pandaeval_lab.cli._writing import output_file
from pandaeval_lab.replay.root_causes import RootCause, by_code
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.collect import Report, ReportOrigin


@stored
def report(
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only traces that started so long ago or later: 2h, 7d.")
    ] = None,
    where: Annotated[list[str] | None, typer.Option(help=WHERE, metavar="KEY=VALUE")] = None,
    output: Annotated[Path | None, output_option("Write here; else a terminal gets pandaeval-report.html.")] = None,
    config: StoreConfig = None,
    store: Path | None = None,
) -> None:
    """Write what a collector has scored as an HTML report, from its data directory.

    Reads only, beside a running collector or with none. Leaves with 2 where there is nothing to report.
    """
    try:
        since_ms = None if since is None else int((time.time() - parse_duration(since)) * 1000)
    except ValueError as error:
        raise UserError(f"--since {since}: {error}") from None
    wanted, only = Wanted(since_ms=since_ms), parse_where(where or ())
    settings = config_with_trials(config, given(store))
    folder = Path(settings.store.path)
    if not (folder / FILE_NAME).is_file():
        raise UserError(
            f"there is no store in {folder} (store.path or PANDAEVAL_DATA): `pandaeval collector` makes one and "
            "scores what applications send to it; docs/instrument.md says how they do. Files need none: "
            "`pandaeval evaluate FILE --format html`."
        )
    output = output or default_file(sys.stdout.isatty())
    finder = Finder(folder, READ_LIMIT_S)
    try:
        with ExitStack() as held, progress(console(stderr=True), "reading") as bar:
            told = write_stored(finder, settings, wanted, only, lambda: held.enter_context(output_file(output)), bar)
    except TooSlowError as error:
        raise UserError(f"{folder}: {error}") from error
    except sqlite3.Error as error:
        raise UserError(f"{folder}: the store cannot be read: {error}") from error
    finally:
        finder.close()
    typer.echo(f"{output or 'report'}: {told}", err=True)


def write_stored(
    finder: Finder,
    settings: Config,
    wanted: Wanted,
    where: Where | None,
    out: Callable[[], TextIO],
    on_read: Callable[[int, int], None],
) -> str:
    """Writes the report of the stored traces that fit ``wanted`` and ``where`` to what ``out`` opens, once there is
    something to write, and returns a sentence on its size. ``on_read`` is called with the number of traces read and of
    all. Raises ``UserError`` where no trace fits."""
    total = finder.count(wanted)
    if not total:
        raise UserError(_nothing(finder, settings, finder.count(replace(wanted, since_ms=None))))
    read = traces = unreadable = 0
    sessions: dict[str, None] = {}
    pairs: dict[str, list[str]] = {}  # those that are asked for, by trace
    for pair in () if where is None else where.wanted.get("attribute", ()):
        for row in stored_rows(finder, replace(wanted, attribute=(pair,))):
            pairs.setdefault(row.facts["id"], []).append(pair)
    with Report(total) as report:
        for row in stored_rows(finder, wanted):
            on_read(read, total)
            read += 1
            facts, status = row.facts, "error" if "error" in row.facts else "ok"
            own = {**facts, "session": row.session, "environment": row.environment, "status": status}
            labels = [said["label"] for said in row.results.values()]
            names = {key: [own.get(key)] for key in NAMED} | {"label": labels, "attribute": pairs.get(facts["id"], [])}
            if where is not None and not where.fits(names, facts["at"] * 1_000_000):
                continue
            traces += 1
            sessions.update({row.session: None} if row.session else {})
            try:
                trace = stored_trace(finder.contents(bytes.fromhex(facts["id"])))
            except (ValueError, DecodeError):
                unreadable, trace = unreadable + 1, None
            report.stored(facts_of(row), trace, row.results.values())
        if not traces:
            raise UserError(_nothing(finder, settings, total))
        for session_id, results in finder.of_sessions(list(sessions)).items():
            report.stored_session(session_id, results.values())
        origin = ReportOrigin(
            sources=[f"store {Path(settings.store.path).resolve().name}"],
            made_at=now().isoformat(timespec="seconds"),
            version=installed_version(),
            judge=settings.judge.model,
            unreadable=unreadable,
            problems=["the spans of traces could not be read again"] if unreadable else [],
            where=where.text if where is not None else "",
            left_out=read - traces,
            modules=tuple(settings.metrics.modules),
        )
        size = report.write(out(), origin)
    return f"{many(len(sessions), 'session')}, {many(traces, 'trace')}, {size / 1e6:.1f} MB; open it in a browser"


def _nothing(finder: Finder, settings: Config, others: int) -> str:
    """Returns why there is nothing to report, and what to do. ``others``: how many stored traces do not fit."""
    path, server = settings.store.path, settings.server
    if others:
        names = finder.names()
        held = "; ".join(f"{key}s: {', '.join(names[key][:10])}" for key in ("agent", "service") if names[key])
        return f"none of the {others:,} agent traces in {path} fits --since and --where ({held})"
    return (
        f"no scored agent trace is in {path} yet. Traces come from applications that send OTLP to a running "
        f"`pandaeval collector` (gRPC {server.grpc}, HTTP {server.http}; docs/instrument.md says how), and are "
        "scored some seconds after their outermost span ended."
    )


_SHOWN_GROUPS = 100


def default_file(terminal: bool) -> Path | None:
    """Returns where a report goes without ``--output``: a file if standard output is a terminal, which it would flood,
    else ``None`` for standard output."""
    return Path("pandaeval-report.html") if terminal else None


def write_report(
    files: TraceFiles,
    results: Callable[[Callable[[Conclusion], None]], Iterator[Result]],
    summary: Summary,
    target: TextIO,
    origin: ReportOrigin,
    *,
    grouped: Callable[[Sequence[Failure]], tuple[RootCause, ...]] = by_code,
    on_scored: Callable[[int, int], None] = lambda done, total: None,
    failed_gates: Callable[[], Sequence[str]] = tuple,
) -> str:
    """Writes the report of ``files``, and returns a sentence on its size. ``results`` scores what is read, and calls
    its argument with each batch of traces; ``origin``: what was asked for, without what comes of it; ``grouped`` groups
    failures. ``on_scored`` is called with the number of scored traces and of all."""
    scored = without_agents = left_out = 0
    sessions, total = set[str](), files.waiting()

    def decided(decision: Conclusion) -> None:
        nonlocal scored, without_agents, left_out
        page.traces(decision.traces)
        sessions.update(trace.session_id for trace in decision.traces if trace.session_id)
        summary.runs(decision.told)
        left_out += len(decision.left_out)
        scored += len(decision.traces)
        without_agents += decision.not_genai
        on_scored(scored + left_out + without_agents, total)

    with Report(total) as page:
        for result in results(decided):
            summary.take(result)
            page.result(result)
        summary.groups = grouped(summary.failures)
        about = replace(
            origin,
            made_at=now().isoformat(timespec="seconds"),
            version=installed_version(),
            requests=files.read.requests,
            items=files.read.items,
            unreadable=files.read.bad,
            problems=tuple(files.read.problems),
            without_agents=without_agents,
            left_out=left_out,
            failures=[
                {**group.to_dict(), "examples": [{"place": one.place, "trace": one.trace_id} for one in group.examples]}
                for group in summary.groups[:_SHOWN_GROUPS]
            ],
            cases=summary.layers.brief() if summary.layers is not None else (),
            mock_calls=summary.layers.calls() if summary.layers is not None else (),
            gates=failed_gates(),
        )
        size = page.write(target, about)
    return f"{many(len(sessions), 'session')}, {many(scored, 'trace')}, {size / 1e6:.1f} MB; open it in a browser"

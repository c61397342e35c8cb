"""``pandaeval demo``: the whole way on this machine, in under a minute."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import grpc.aio
import orjson
import typer
from rich.console import Console

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._hand import file_option
from pandaeval_collector.cli._output import console
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.config import load
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.cli._recordings import recorded
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._tables import print_sessions
from pandaeval_lab.cli.report import write_report
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.collect import ReportOrigin
from pandaeval_otel.wire.otlp_json import logs_from_json, traces_from_json

_PATIENCE_S = 50.0
"""So long it waits until nothing is left to do."""

_NEXT = """\
Recordings of real agents, sent over OTLP and scored without a model or a key.
Your own: `pandaeval collector`, or of stored traces `pandaeval evaluate FILE`."""


def demo(
    keep: Annotated[Path | None, file_option("Keep the results here, as JSON lines.")] = None,
    report: Annotated[Path | None, file_option("Write them here as a report, one HTML file.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Do not go on to show them, as in a pipe.")] = False,
) -> None:
    """Start a collector, send it recorded sessions of real agents over OTLP, and show their scores.

    In a terminal its page stays until Ctrl-C.
    """
    for option, path in (("--keep", keep), ("--report", report)):
        try:
            if path is not None:
                path.open("a").close()
        except OSError as error:
            raise UserError(f"{option} {path}: {error.strerror or error}") from error
    out = console()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pandaeval-demo-") as folder:
        results = Path(folder) / "results.jsonl"
        with out.status("starting a collector and sending it recorded sessions over OTLP/gRPC …"), guarded():
            sent = asyncio.run(_run(Path(folder), results))
        lines = results.read_bytes()
        if keep is not None:
            keep.write_bytes(lines)
        summary = Summary()
        with TraceFiles() as run:  # how each run ended, results do not say
            run.add_all(_requests())
            summary.runs((each.trace_id, each.session_id, each.error) for each in run.traces())
        for line in lines.splitlines():
            summary.add(orjson.loads(line))
        print_sessions(summary.sessions_worst_first(), out)
        out.print(f"{sent} requests, {summary.traces} agent traces, {time.monotonic() - started:.1f} s")
        if report is not None:
            out.print(f"{report}: {_reported(report)}")
        out.print(_NEXT)
        if out.is_terminal and not once:
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(_serve(Path(folder), results, out))


def _reported(report: Path) -> str:
    """Writes the report of the recordings, and returns a sentence on its size."""
    config = load(None, {})
    scorer = evaluator(config)  # whose results equal the collector's, id for id
    with report.open("w", encoding="utf-8") as target, TraceFiles(close_rules(config)) as files:
        files.add_all(_requests())
        origin = ReportOrigin(sources=["recorded demo sessions"])
        scored = lambda decided: replay(files, scorer, on_decided=decided)  # noqa: E731
        return write_report(files, scored, Summary(), target, origin)


def _collector(folder: Path, results: Path) -> Collector:
    """Returns a collector on free ports."""
    settings = {
        **{f"SERVER__{door}": "127.0.0.1:0" for door in ("GRPC", "HTTP", "HEALTH")},
        "CLOSE__QUIET": "1s",
        "CLOSE__IDLE": "2s",
        "SESSION__IDLE": "1s",
        "STORE__PATH": str(folder / "data"),
        "EXPORTERS__JSONL__PATH": str(results),
    }
    return Collector(load(None, {f"PANDAEVAL_{key}": value for key, value in settings.items()}), {})


async def _serve(folder: Path, results: Path, out: Console) -> None:
    """Shows the page of what was scored, until it is cancelled."""
    collector = _collector(folder, results)
    page = f"http://{(await collector.start()).http}/#/failures?window=all"
    try:
        out.print(f"Look first at what failed: {page}\nCtrl-C ends it.")
        await asyncio.Event().wait()
    finally:
        await collector.stop()


async def _run(folder: Path, results: Path) -> int:
    """Runs a collector on free ports until everything that was sent is scored. Returns the number of requests."""
    collector = _collector(folder, results)
    listening = await collector.start()
    try:
        sent = 0
        async with grpc.aio.insecure_channel(str(listening.grpc)) as channel:
            traces = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export", None, None)
            logs = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export", None, None)
            for request in _requests():
                await (logs if request.logs else traces)(request.data)
                sent += 1
        deadline = time.monotonic() + _PATIENCE_S
        while not collector.at_rest and time.monotonic() < deadline:  # noqa: ASYNC110 - rest is the absence of events
            await asyncio.sleep(0.1)
    finally:
        await collector.stop()
    return sent


def _requests() -> Iterator[Request]:
    """Yields the recorded requests, encoded as OTLP protobuf."""
    for document in recorded():
        logs = "resourceLogs" in document
        decoded = logs_from_json(document) if logs else traces_from_json(document)
        yield Request(logs, decoded.SerializeToString())

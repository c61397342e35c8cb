"""``pandaeval demo``: the whole way on this machine, in under a minute."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import grpc.aio
import orjson
import typer

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import console
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.config import load
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.cli._recordings import recorded
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._tables import print_summary
from pandaeval_lab.cli.report import write_report
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_lab.report.collect import ReportOrigin
from pandaeval_otel.wire.otlp_json import logs_from_json, traces_from_json

_PATIENCE_S = 50.0
"""So long it waits until nothing is left to do."""

_NEXT = """\
What you saw: a collector was started here, recorded sessions of real agents were sent to it over OTLP/gRPC, and every
trace and session was scored without any model, key or network.

Next:
  pandaeval collector                    run the sidecar; send OTLP to 127.0.0.1:4327 (gRPC) or http://127.0.0.1:4328,
                                         and look at the scores of your agent on http://127.0.0.1:4328/
  pandaeval inspect traces.jsonl         what is understood of traces that you stored
  pandaeval evaluate traces.jsonl        score them; with --format html as a report to click through
  pandaeval metrics coherence            what a metric asks, and what it does not judge
"""


def demo(
    keep: Annotated[Path | None, typer.Option(help="Keep the results here, as JSON lines.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write them here as a report, one HTML file.")] = None,
) -> None:
    """Start a collector, send it recorded sessions of real agents over OTLP, and show their scores."""
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
    print_summary(summary, out)
    out.print(f"{sent} requests, {summary.traces} agent traces, {time.monotonic() - started:.1f} s\n")
    if report is not None:
        config = load(None, {})
        scorer = evaluator(config)  # whose results equal the collector's, id for id
        with report.open("w", encoding="utf-8") as target, TraceFiles(close_rules(config)) as files:
            files.add_all(_requests())
            origin = ReportOrigin(sources=["recorded demo sessions"])
            scored = lambda decided: replay(files, scorer, on_decided=decided)  # noqa: E731
            told = write_report(files, scored, Summary(), target, origin)
        out.print(f"{report}: {told}\n")
    out.print(_NEXT)


async def _run(folder: Path, results: Path) -> int:
    """Runs a collector on free ports until everything that was sent is scored. Returns the number of requests."""
    config = load(
        None,
        {
            "PANDAEVAL_SERVER__GRPC": "127.0.0.1:0",
            "PANDAEVAL_SERVER__HTTP": "127.0.0.1:0",
            "PANDAEVAL_SERVER__HEALTH": "127.0.0.1:0",
            "PANDAEVAL_CLOSE__QUIET": "1s",
            "PANDAEVAL_CLOSE__IDLE": "2s",
            "PANDAEVAL_SESSION__IDLE": "1s",
            "PANDAEVAL_STORE__PATH": str(folder / "data"),
            "PANDAEVAL_EXPORTERS__JSONL__PATH": str(results),
        },
    )
    collector = Collector(config, {})
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

"""``pandaeval demo``: the pipeline end to end on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import grpc.aio
import orjson
from rich.console import Console
from rich.text import Text

from pandaeval_collector.app.collector import Collector, Listening
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._options import file_option, option
from pandaeval_collector.cli._output import console
from pandaeval_collector.cli._terminal import guarded
from pandaeval_collector.config import Config, load
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import Wanted
from pandaeval_lab.cli._recordings import recorded_judge, requests
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.cli._tables import print_sessions, print_things

_DATA = "data"
_PATIENCE_S = 50.0
"""Maximum time to wait until the collector has scored all traces."""

_NEXT = """\
Recorded sessions of real agents, sent over OTLP and scored here. Judge: {judge}.
For your own agents: `pandaeval collector`. For stored traces: `pandaeval evaluate FILE`."""


def demo(
    keep: Annotated[Path | None, file_option("Write the results to this file, as JSON lines.")] = None,
    once: Annotated[bool, option("Exit after scoring, even in a terminal.", "--once")] = False,
) -> None:
    """Score recorded sessions of real agents and show the page.

    The command starts a collector and sends the sessions to it over OTLP. The judge's verdicts are also recorded. To
    use your own judge, set PANDAEVAL_JUDGE__MODEL. In a terminal, the page stays open until Ctrl-C.
    """
    _check_writable(keep)
    out = console()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pandaeval-demo-") as name:
        folder = Path(name)
        saved = folder / "results.jsonl"
        with out.status("starting a collector and sending it recorded sessions over OTLP/gRPC …"), guarded():
            sent = asyncio.run(_run(folder, saved))
        lines = saved.read_bytes()
        if keep is not None:
            keep.write_bytes(lines)
        traces = _show(folder, [orjson.loads(line) for line in lines.splitlines()], out)
        out.print(f"scored {traces} runs of agents, from {sent} OTLP requests, in {time.monotonic() - started:.1f} s")
        out.print(_NEXT.format(judge=_config().judge.model))
        if out.is_terminal and not once:
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(_serve(folder, saved, out))


def _check_writable(path: Path | None) -> None:
    try:
        if path is not None:
            path.open("a").close()
    except OSError as error:
        raise UserError(f"--keep {path}: {error.strerror or error}; name a writable file") from error


def _show(folder: Path, results: Sequence[Mapping[str, Any]], out: Console) -> int:
    summary = Summary()
    for result in results:
        summary.add(result)
    with contextlib.closing(Finder(folder / _DATA)) as finder:
        summary.count(finder.connection())
        out.print(Text(summary.headline, style="bold"))
        print_sessions(finder, summary.units, out)
        print_things([result for result in results if result["metric"] == "correctness"], out)
        return finder.count(Wanted())


def _config(**given: object) -> Config:
    environ = {name: value for name, value in os.environ.items() if name.startswith("PANDAEVAL_JUDGE__")}
    recorded = {} if "PANDAEVAL_JUDGE__MODEL" in environ else recorded_judge()
    return load(None, environ, {**recorded, "judge.delay": "0s", "judge.detail": "all", **given})


@contextlib.asynccontextmanager
async def _running(folder: Path, results: Path) -> AsyncIterator[tuple[Collector, Listening]]:
    settings = {
        **{f"server.{door}": "127.0.0.1:0" for door in ("grpc", "http", "health")},
        "close.quiet": "1s",
        "close.idle": "2s",
        "session.idle": "1s",
        "store.path": str(folder / _DATA),
        "exporters.jsonl.path": str(results),
    }
    collector = Collector(_config(**settings), os.environ)
    listening = await collector.start()
    try:
        yield collector, listening
    finally:
        await collector.stop()


async def _serve(folder: Path, results: Path, out: Console) -> None:
    async with _running(folder, results) as (_, listening):
        out.print(f"Page: http://{listening.http}/\nPress Ctrl-C to stop.")
        await asyncio.Event().wait()


async def _run(folder: Path, results: Path) -> int:
    sent = 0
    async with _running(folder, results) as (collector, listening):
        async with grpc.aio.insecure_channel(str(listening.grpc)) as channel:
            traces = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export", None, None)
            logs = channel.unary_unary("/opentelemetry.proto.collector.logs.v1.LogsService/Export", None, None)
            for request in requests():
                await (logs if request.logs else traces)(request.data)
                sent += 1
        deadline = time.monotonic() + _PATIENCE_S
        while not collector.at_rest and time.monotonic() < deadline:  # noqa: ASYNC110 - rest is the absence of events
            await asyncio.sleep(0.1)
    return sent

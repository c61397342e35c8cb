"""What people and programs look at a running collector by, on its HTTP listener: the API with its page, and MCP."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from starlette.routing import BaseRoute

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.watching import Watching
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.api import Lookouts
from pandaeval_collector.show.api.lookouts import VERSION
from pandaeval_collector.show.api.read_process import ReadProcess
from pandaeval_collector.show.api.work import PageWork, ReadSetup, Work
from pandaeval_collector.show.mcp.door import McpDoor
from pandaeval_collector.store import Store


def open_lookouts(
    config: Config,
    hosts: Collection[str] | None,
    store: Store,
    scorer: Evaluator,
    watching: Watching,
    runs: Runs,
    telemetry: Telemetry,
    parts: AsyncExitStack,
    environ: Mapping[str, str],
) -> list[BaseRoute]:
    """Returns the HTTP routes of API, page and MCP; ``parts`` closes what is behind them. ``hosts``: host names that
    requests may have beside addresses and localhost; ``None``: any, where a token is demanded. ``environ``: variables
    of the process that answers reads, if there is one."""
    path, work = Path(config.store.path), _work(config, store, scorer, watching, telemetry)
    reader: ReadProcess | None = None
    if config.server.read_process:
        thresholds = {metric.key: threshold for metric, threshold in work.metrics}
        setup = ReadSetup(path, VERSION, work.judge, work.daily_usd, thresholds, work.modules, work.page, True)
        reader = ReadProcess(setup, work, environ, telemetry)
        parts.push_async_callback(reader.calls.close)
    lookouts = Lookouts(path, work, hosts, runs, reader)
    parts.callback(lookouts.close)
    here = config.ui.url or f"http{'' if config.server.tls is None else 's'}://{config.server.http}"
    agents = McpDoor(lookouts.api, here if config.ui.enabled else None)
    lookouts.add("/mcp", agents)
    parts.push_async_callback(agents.close)
    return lookouts.routes


def _work(config: Config, store: Store, scorer: Evaluator, watching: Watching, telemetry: Telemetry) -> Work:
    port = config.server.grpc.rpartition(":")[2]
    page = PageWork(config.ui.links, config.ui.refresh, int(port) if port.isdecimal() else None)
    return Work(
        jobs=store.jobs.counts,
        spent=lambda: store.spending.spent(store.spending.today(time.time())),
        session_now=watching.session_now,
        annotate=lambda labels: store.people.put(labels, time.time()),
        drawing=store.people.drawing,
        component_errors=telemetry.component_errors,
        judge=config.judge.model,
        daily_usd=config.judge.daily_usd,
        metrics=tuple((each, scorer.threshold(each)) for each in registry(scorer.settings.modules).values()),
        modules=scorer.settings.modules,
        page=page if config.ui.enabled else None,
    )

"""``pandaeval collector``: runs the sidecar."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pandaeval_collector.cli._options import config_option, option

if TYPE_CHECKING:
    from pandaeval_collector.config import Config


def collector(
    config: Annotated[Path | None, config_option("Configuration file (YAML); default: built-in defaults.")] = None,
    log_level: Annotated[str, option("Log level: debug, info, warning or error.")] = "info",
) -> None:
    """Run the sidecar until SIGTERM or Ctrl-C.

    Incomplete traces stay in the store, and the collector resumes them at its next start. If store.on_shutdown
    is decide, the collector scores them before it stops.
    """
    # gRPC reads this variable when it is imported, with the configuration. Our child processes are new programs, not
    # forks, so they do not need gRPC's fork support.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.base.runtime.logs import set_up
    from pandaeval_collector.cli._config import resolve_config
    from pandaeval_collector.receivers.bind import BindError
    from pandaeval_collector.store import StoreBusyError

    settings = resolve_config(config, on_this_machine=True, apart=True).config
    level = logging.getLevelNamesMapping().get(log_level.upper())
    if level is None:
        raise UserError(f"--log-level {log_level}: write debug, info, warning or error")
    set_up(level)
    logging.getLogger("uvicorn").setLevel(max(level, logging.WARNING))
    try:
        with asyncio.Runner(loop_factory=_new_event_loop) as runner:
            runner.run(_serve(settings))
    except (BindError, StoreBusyError) as error:
        raise UserError(str(error)) from error


def _new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # not available on every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(config: Config) -> None:
    import sqlite3

    from pandaeval_collector.app.collector import Collector
    from pandaeval_collector.base.errors import UserError
    from pandaeval_collector.base.runtime.garbage import give_memory_back, spare_the_garbage_collector
    from pandaeval_collector.base.runtime.version import release

    log = logging.getLogger("pandaeval_collector")
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    give_memory_back()  # before there are threads
    running = Collector(config, os.environ)
    starting = asyncio.ensure_future(running.start())
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
        while not starting.done() and not running.waits_for:
            await asyncio.wait((starting,), timeout=0.1)
        starting.cancel()  # no effect if it is done
        listening = await starting
    except asyncio.CancelledError:
        log.info("stopped before it could start")
        return
    except (OSError, sqlite3.OperationalError) as error:
        raise UserError(f"the collector cannot start with its data in {config.store.path}: {error}") from error
    spare_the_garbage_collector()
    log.info(release())
    log.info(
        "ready: OTLP/gRPC on %s, OTLP/HTTP on http://%s, health on http://%s, data in %s",
        listening.grpc,
        listening.http,
        listening.health,
        config.store.path,
    )
    if config.ui.enabled:
        scheme = "http" if config.server.tls is None else "https"
        log.info("scores are shown on %s", config.ui.url or f"{scheme}://{listening.http}/")
    await stopped
    log.info("stopping: store.on_shutdown decides about incomplete traces")
    await running.stop()
    log.info("stopped")

"""A running collector, assembled from its configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from starlette.routing import BaseRoute

from pandaeval_collector.app.line_setup import LineSetup
from pandaeval_collector.app.outlets import Outlets, instance_id
from pandaeval_collector.app.reader_process import ReaderProcess
from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config, secret
from pandaeval_collector.exporters import Surroundings
from pandaeval_collector.exporters.prometheus import Scrape
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.kafka import receivers as kafka
from pandaeval_collector.pipeline.accounting import STATM, resident_bytes, residual
from pandaeval_collector.pipeline.line_processes import LineProcesses
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.upkeep import Guard, probe
from pandaeval_collector.pipeline.watching import Watching
from pandaeval_collector.receivers._body_reader import BodyReader
from pandaeval_collector.receivers._signals import DoorSettings
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, check_bind, health_connections, parse_address
from pandaeval_collector.receivers.health import health_app
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.own_grpc import ResultsHandler, submit_handler
from pandaeval_collector.receivers.server import HttpServer
from pandaeval_collector.runs.front import timing
from pandaeval_collector.show.listener import shown
from pandaeval_collector.store import Store
from pandaeval_collector.store.access import JUDGE_TABLES, writing
from pandaeval_collector.store.connection import FILE_NAME, note_damage
from pandaeval_collector.store.directory import has_no_room
from pandaeval_collector.store.failure_groups import GroupGauges

_log = logging.getLogger(__name__)

_GRACE_S = 5.0
"""Seconds that gRPC calls get to end when the collector stops."""
_LOOK_S = 60.0
"""Seconds between two looks for work of the reader process that no request starts."""
_JUDGE = "pandaeval_collector.app.judge_main"
_FENCE_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
"""The key under which the store keeps the secret that fences in prompts are made with."""
_ROOM_S = 1.0
"""Seconds between two checks of a full disk at the start."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Addresses of a started collector, with real port numbers."""

    grpc: Address
    http: Address
    health: Address


class Collector:
    """A collector. Create, :meth:`start` and :meth:`stop` it on one event loop."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config, self._environ = config, environ
        self.waits_for = ""
        """The reason why the collector cannot start yet, such as a full disk; ``""`` for none."""
        self.telemetry = Telemetry()
        self._parts = contextlib.AsyncExitStack()
        self._ready = {"store": False, "pipeline": False, "grpc": False, "http": False}
        self._scrape = Scrape(self.telemetry, None)
        self._pipeline: Pipeline | None = None
        self._unjudged: Callable[[], int] = lambda: 0
        self._guard: Guard | None = None
        server, self._tls = config.server, config.server.tls
        self._token = secret(server.token_env, environ)
        self._body_reader = BodyReader.of_messages(server.max_request_bytes)
        read_bytes = self._body_reader.at_once * server.max_request_bytes
        self._admission = Admission.beside_reading(server.max_inflight_bytes, read_bytes)

    async def start(self) -> Listening:
        """Open the store, resume, open the receivers. Raises start errors, with all parts stopped."""
        try:
            return await self._begin()
        except sqlite3.DatabaseError as error:
            if not note_damage(Path(self._config.store.path) / FILE_NAME, error):
                raise
        return await self._begin()  # which puts the store aside

    async def _begin(self) -> Listening:
        try:
            return await self._start()
        except BaseException:
            await self._parts.aclose()
            raise

    @property
    def at_rest(self) -> bool:
        """Whether all traces, sessions and judge calls are done."""
        pipeline = self._pipeline
        return pipeline is not None and not (pipeline.open_traces or pipeline.open_sessions or self._unjudged())

    async def stop(self) -> None:
        """Close the receivers, finish current work, and store the rest for the next start."""
        self._admission.draining = True  # senders of new requests must retry later
        self._ready = dict.fromkeys(self._ready, False)
        await self._parts.aclose()

    async def _start(self) -> Listening:
        config = self._config
        grpc, http = parse_address(config.server.grpc), parse_address(config.server.http)
        for address in (grpc, http):
            check_bind(address, self._tls, self._token, config.server.insecure_bind)
        health_server, health = await self._open_health(parse_address(config.server.health))
        store = await self._open_store(health_server)
        around = Surroundings(store, self.telemetry, self._environ, await instance_id(store), config)
        outlets = await self._open_outlets(around)
        line = await self._start_line(store, outlets.signals)
        pipeline = Pipeline(store, line, timing(config), self.telemetry, hands_over=config.kafka.hands_over)
        self._publish(store, pipeline)
        watching = Watching(store)
        readers = await kafka.readers(around, pipeline, outlets)
        pipeline.listen(lambda _: outlets.wake())
        pipeline.listen(lambda _: watching.wake())
        await pipeline.start()
        self._pipeline = pipeline
        self._parts.push_async_callback(pipeline.stop, config.store.on_shutdown == "decide")
        judge = await self._start_judge(store, line, pipeline)
        self._ready["pipeline"] = True
        if readers and judge is not None:
            readers[0].on_share = partial(judge.tell, "share")
        for reader in readers:
            reader.start()
            self._parts.push_async_callback(reader.stop)
        hosts = config.server.allowed_hosts if self._token is None else None
        asked = self._reader(store, pipeline, line, judge)
        routes = shown(asked, hosts, config.ui.enabled)
        grpc, http = await self._open_doors(pipeline, watching, grpc, http, routes)
        asked.reached_at(str(http))
        looking = Every(_LOOK_S, asked.look, "pandaeval-reader", grace=0.0)
        self._parts.push_async_callback(looking.stop)
        self._ready |= {"grpc": True, "http": True}
        return Listening(grpc, http, health)

    def _publish(self, store: Store, pipeline: Pipeline) -> None:
        gauge = self.telemetry.gauge
        gauge("pandaeval.traces.open", lambda: pipeline.open_traces)
        gauge("pandaeval.lag", lambda: pipeline.lag)
        gauge("pandaeval.accounting.residual", lambda: residual(self.telemetry, pipeline.open_items))
        gauge("pandaeval.store.size", store.size_bytes)
        gauge("pandaeval.queue.size", store.waiting, queue="store")
        if STATM.exists():
            gauge("pandaeval.memory", resident_bytes)

    async def _open_doors(
        self, pipeline: Pipeline, watching: Watching, grpc: Address, http: Address, routes: Sequence[BaseRoute]
    ) -> tuple[Address, Address]:
        server = self._config.server
        settings = DoorSettings(
            self._admission,
            server.max_request_bytes,
            token=self._token,
            telemetry=self.telemetry,
            reading=self._body_reader,
        )
        # Other machines reach it under names of their network, which are not known here.
        hosts = server.allowed_hosts if self._token is None and http.is_loopback else None
        app = otlp_http_app(pipeline, settings, hosts=hosts, routes=routes)
        http_server = HttpServer(app, http, setting="server.http", tls=self._tls)
        http_address = await http_server.start()
        self._parts.push_async_callback(http_server.stop)
        handlers = [submit_handler(pipeline, settings), ResultsHandler(watching, settings).handler]
        grpc_server = OtlpGrpcServer(pipeline, settings, grpc, tls=self._tls, handlers=handlers)
        grpc_address = await grpc_server.start()
        self._parts.push_async_callback(grpc_server.stop, _GRACE_S)
        self._parts.push_async_callback(watching.close)
        self._admission.draining = False
        return grpc_address, http_address

    async def _start_line(self, store: Store, signals: Collection[str]) -> LineProcesses:
        config = self._config
        self.telemetry.family(GroupGauges(store.reads.connection).values)
        setup = LineSetup(config, signals)
        line = LineProcesses(config.line.workers, setup, self._environ, self.telemetry, config.line.timeout)
        self._parts.push_async_callback(line.close)
        await line.start()
        return line

    async def _start_judge(self, store: Store, line: LineProcesses, pipeline: Pipeline) -> Calls | None:
        config, telemetry = self._config, self.telemetry
        if config.judge.model is None:
            return None
        secret(config.judge.api_key_env, self._environ)
        if store.reads.get(_FENCE_SECRET) is None:
            await asyncio.wrap_future(store.put(_FENCE_SECRET, secrets.token_hex(32)))

        async def longest_wait(_: Any) -> float:
            return pipeline.kept_for

        handlers: dict[str, Callable[..., Any]] = {
            "write": writing(store, JUDGE_TABLES),
            **_deciding(pipeline, line, "judged"),
            "longest_wait": longest_wait,
            "measured": partial(telemetry.take_in, "judge"),
        }
        count, setup = partial(telemetry.add, "pandaeval.judges"), (config, store.clock)
        judge = Calls("the judge", _JUDGE, setup, self._environ, count=count, handlers=handlers, keep=True)
        self._parts.push_async_callback(judge.close)
        await judge.start()
        self._unjudged = store.jobs.waiting
        telemetry.gauge("pandaeval.queue.size", store.jobs.waiting, queue="judge")
        if (limit := config.judge.daily_usd) is not None:
            spending = store.spending
            telemetry.gauge("pandaeval.judge.budget.limit", lambda: limit)
            telemetry.gauge("pandaeval.judge.budget.spent", lambda: spending.spent(spending.today(time.time())))
        return judge

    def _reader(self, store: Store, pipeline: Pipeline, line: LineProcesses, judge: Calls | None) -> ReaderProcess:
        decide = _deciding(pipeline, line, "emitted", "dismiss")
        reader = ReaderProcess(self._config, self._environ, self.telemetry, store, decide, judge)
        self._parts.push_async_callback(reader.calls.close)
        return reader

    async def _open_health(self, address: Address) -> tuple[HttpServer, Address]:
        # Later its series come from the store.
        scrape = (lambda accept: self._scrape.answer(accept)) if self._config.exporters.prometheus.enabled else None
        # Other machines reach it under names of their network, which are not known here.
        hosts = self._config.server.allowed_hosts if address.is_loopback else None
        stages = lambda: self._ready | {"store": self._ready["store"] and not self._trouble}  # noqa: E731
        app = health_app(stages, scrape, lambda: self._trouble, hosts)
        server = HttpServer(app, address, setting="server.health", connections=health_connections())
        address = await server.start()
        self._parts.push_async_callback(server.stop)
        return server, address

    async def _open_store(self, health: HttpServer) -> Store:
        while (store := await self._store_with_room()) is None:
            pass
        self.waits_for = ""
        self._parts.callback(store.close)
        self._parts.push_async_callback(health.stop)
        self.telemetry.add("pandaeval.store.errors", "put_aside", int(store.was_damaged))
        self._guard = Guard(store, self.telemetry)
        self._parts.push_async_callback(self._guard.start().stop)
        self._ready["store"] = True
        return store

    async def _store_with_room(self) -> Store | None:
        """Open the store; if the disk is full, log, pause and return ``None``."""
        config = self._config.store
        store: Store | None = None
        try:
            # On a thread, because a large file takes long, and health checks need answers.
            store = await asyncio.to_thread(Store, Path(config.path), config.durability, config.max_bytes)
            await probe(store)
        except (OSError, sqlite3.OperationalError) as error:
            if store is not None:
                await asyncio.to_thread(store.close)
            if not has_no_room(Path(config.path), error):
                if not self.waits_for:
                    raise
                self.waits_for = ""  # once more: room may have come during this attempt
                return None
            if not self.waits_for:
                _log.error("the disk of %s is full (%s): make space; the collector then starts", config.path, error)
            self.waits_for = f"the disk of {config.path} is full: {error}"
            await asyncio.sleep(_ROOM_S)
            return None
        return store

    async def _open_outlets(self, around: Surroundings) -> Outlets:
        exporters = self._config.exporters
        if exporters.scrape_results:
            series = ZeroFirst(around.store, "scrape", exporters.otlp.metrics_interval)
            self._scrape = Scrape(self.telemetry, series)
        outlets = Outlets(self._config, around)
        await outlets.start()
        self._parts.push_async_callback(outlets.stop)
        return outlets

    @property
    def _trouble(self) -> str:
        return self.waits_for or ("" if self._guard is None else self._guard.trouble)


def _deciding(pipeline: Pipeline, line: LineProcesses, *names: str) -> dict[str, Callable[..., Any]]:
    """Return handlers by name that let the line decide, and commit its decision."""

    async def decide(name: str, _: Any, *arguments: Any) -> None:
        await pipeline.commit(lambda: line.decide(name, *arguments))

    return {name: partial(decide, name) for name in names}

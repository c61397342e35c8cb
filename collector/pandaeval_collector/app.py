"""A running collector: its parts put together from the configuration, started in order and stopped in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pandaeval_collector.config import Config, secret, tls_files
from pandaeval_collector.delivery.emitter import Emitter
from pandaeval_collector.delivery.outlets import Outlets, instance_id
from pandaeval_collector.evaluator import Evaluator
from pandaeval_collector.exporters import Surroundings
from pandaeval_collector.exporters.prometheus import Scrape
from pandaeval_collector.exporters.zero_first import ZeroFirst
from pandaeval_collector.judging import Agreement, Canaries, Retest, Runner, open_caller, read_canaries
from pandaeval_collector.line.hints import Hints
from pandaeval_collector.line.line import Line
from pandaeval_collector.line.understanding import Run
from pandaeval_collector.pipeline.accounting import publish
from pandaeval_collector.pipeline.drain import drain
from pandaeval_collector.pipeline.guard import Guard
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.pipeline.watching import Watching
from pandaeval_collector.receivers._connections import health_connections
from pandaeval_collector.receivers._reading import Reading
from pandaeval_collector.receivers.admission import Admission
from pandaeval_collector.receivers.bind import Address, check_bind, parse_address
from pandaeval_collector.receivers.health import health_app
from pandaeval_collector.receivers.otlp_grpc import OtlpGrpcServer
from pandaeval_collector.receivers.otlp_http import otlp_http_app
from pandaeval_collector.receivers.results_grpc import ResultsHandler
from pandaeval_collector.receivers.server import HttpServer
from pandaeval_collector.receivers.submit_grpc import SubmitHandler
from pandaeval_collector.series import Labels
from pandaeval_collector.settings import evaluator, judge, timing, workers
from pandaeval_collector.store import Store
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.damage import note_damage
from pandaeval_collector.telemetry import Telemetry
from pandaeval_collector.workers import Setup, Workers

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a started collector can be reached, with real port numbers."""

    grpc: Address
    http: Address
    health: Address


class Collector:
    """One collector. Create, :meth:`start` and :meth:`stop` it on one event loop."""

    def __init__(
        self, config: Config, environ: Mapping[str, str], on_failure: Callable[[], None] = lambda: None
    ) -> None:
        """``on_failure`` is called on the event loop when it has to be stopped and started again; then it
        ``has_failed``."""
        self._config, self._environ, self._on_failure = config, environ, on_failure
        self.has_failed = False
        self.telemetry = Telemetry()
        self._parts = contextlib.AsyncExitStack()
        self._ready = {"store": False, "pipeline": False, "grpc": False, "http": False}
        self._reading = Reading.of_messages(config.server.max_request_bytes)
        read_bytes = self._reading.at_once * config.server.max_request_bytes
        self._admission = Admission.beside_reading(config.server.max_inflight_bytes, read_bytes)
        self._scrape = Scrape(self.telemetry, None)
        self._pipeline: Pipeline | None = None
        self._guard: Guard | None = None
        self._token = secret(config.server.token_env, environ)
        self._tls = tls_files(config)

    async def start(self) -> Listening:
        """Opens the store, resumes, then the doors. Raises what keeps it from starting; nothing is left running."""
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
        """Whether everything that came is decided, and every session scored."""
        return self._pipeline is not None and not self._pipeline.open_traces and not self._pipeline.open_sessions

    async def stop(self) -> None:
        """Closes the doors, finishes what is at hand, keeps the rest in the store for the next start."""
        self._admission.draining = True
        self._ready = dict.fromkeys(self._ready, False)
        await self._parts.aclose()

    async def _start(self) -> Listening:
        config, parts = self._config, self._parts
        addresses = [parse_address(text) for text in (config.server.grpc, config.server.http, config.server.health)]
        for address in addresses[:2]:
            check_bind(address, self._tls, self._token, config.server.insecure_bind)
        metrics = self._metrics if config.exporters.prometheus.enabled else None
        health = HttpServer(
            health_app(self._stages, metrics, lambda: self._trouble),
            addresses[2],
            setting="server.health",
            connections=health_connections(),
        )
        health_address = await health.start()
        parts.push_async_callback(health.stop)
        scorer = await asyncio.to_thread(evaluator, config)
        # On a thread: a large file takes a while, and the health checks want an answer meanwhile.
        store = await asyncio.to_thread(Store, Path(config.store.path), config.store.durability, config.store.max_bytes)
        parts.callback(store.close)
        parts.push_async_callback(health.stop)  # before the store goes: a scrape reads it
        self.telemetry.add("pandaeval.store.errors", "put_aside", int(store.was_damaged))
        self.telemetry.add("pandaeval.store.errors", "missing", int(bool(store.missing)))
        if config.store.on_shutdown == "forward" and config.store.drain_to is not None:
            certificate = config.store.drain_certificate
            drained = partial(drain, store, config.store.drain_to, token=self._token, certificate=certificate)
            parts.push_async_callback(_unless_gone, store, drained)
        self._guard = Guard(store, self.telemetry, self._fail)
        self._guard.start()
        parts.push_async_callback(self._guard.stop)
        self._ready["store"] = True
        outlets = await self._open_outlets(store)
        line = Line(store, scorer, await self._emitter(store, outlets.signals))
        hints = Hints(config.judge.model is not None)

        def look(runs: Sequence[Run]) -> None:
            hints.look(run.lacking for run in runs)

        understands = await self._start_workers(scorer)
        pipeline = Pipeline(
            store,
            line,
            timing(config),
            self.telemetry,
            lambda _: wake(),
            on_runs=look,
            understands=understands,
            trial=None if understands is not None else partial(self._workers, 1, scorer),
        )
        watching = Watching(store, pipeline)

        def wake() -> None:
            outlets.wake()
            watching.wake()

        publish(self.telemetry, store, pipeline)
        await pipeline.start()
        self._pipeline = pipeline
        parts.push_async_callback(self._stop_pipeline, pipeline, store)
        await self._start_judge(store, line, scorer, pipeline)
        self._ready["pipeline"] = True
        items = config.server.max_request_items
        grpc = OtlpGrpcServer(
            pipeline,
            self._admission,
            addresses[0],
            max_request_bytes=config.server.max_request_bytes,
            max_request_items=items,
            reading=self._reading,
            token=self._token,
            tls=self._tls,
            handlers=[
                SubmitHandler(pipeline, self._admission, self.telemetry, items, self._reading).handler,
                ResultsHandler(watching, self.telemetry, self._reading).handler,
            ],
            telemetry=self.telemetry,
        )
        http = HttpServer(
            otlp_http_app(
                pipeline,
                self._admission,
                max_request_bytes=config.server.max_request_bytes,
                max_request_items=items,
                token=self._token,
                telemetry=self.telemetry,
            ),
            addresses[1],
            setting="server.http",
            tls=self._tls,
        )
        http_address = await http.start()
        parts.push_async_callback(http.stop)
        grpc_address = await grpc.start()
        parts.push_async_callback(grpc.stop, 5.0)
        parts.push_async_callback(watching.close)
        self._admission.draining = False
        self._ready |= {"grpc": True, "http": True}
        return Listening(grpc_address, http_address, health_address)

    async def _emitter(self, store: Store, signals: Collection[str]) -> Emitter:
        """Goes on with the series that there are."""
        most = self._config.exporters.max_series
        others = await asyncio.to_thread(store.bound_series, most)
        if others:
            _log.warning(
                "%d series of the store had names that are too long or were too many: others hold them", others
            )
        labels = Labels(store.labels(), store.series_names(), most)
        self.telemetry.gauge("pandaeval.series", lambda: labels.series)
        return Emitter(signals, labels, lambda results: self.telemetry.add("pandaeval.series.folded", "", results))

    async def _start_workers(self, scorer: Evaluator) -> Workers | None:
        number = workers(self._config)
        if not number:
            return None
        pool = self._workers(number, scorer)
        self._parts.push_async_callback(pool.close)
        await pool.start()
        return pool

    def _workers(self, number: int, scorer: Evaluator) -> Workers:
        config, level = self._config, logging.getLogger().getEffectiveLevel()
        setup = Setup(Path(config.store.path), config.embedding.model, scorer.settings, level)
        return Workers(number, setup, self._environ, self.telemetry)

    async def _start_judge(self, store: Store, line: Line, scorer: Evaluator, pipeline: Pipeline) -> None:
        configured = judge(self._config)
        if configured is None:
            return
        secret(self._config.judge.api_key_env, self._environ)
        process, caller = open_caller(store, configured, self._environ)
        self._parts.push_async_callback(process.close)
        agreement = Agreement(store, self.telemetry)
        if configured.canaries is not None:
            flock = await asyncio.to_thread(read_canaries, Path(configured.canaries), scorer.settings.modules)
            canaries = Canaries(flock, store, caller, scorer, agreement, self.telemetry, configured.canary_interval)
            canaries.start()
            self._parts.push_async_callback(canaries.stop)
        runner = Runner(
            store,
            line,
            scorer,
            caller,
            pipeline.settle,
            self.telemetry,
            over_budget=configured.over_budget,
            slots=2 * configured.limits.concurrency,
            retest=Retest(caller, agreement, self.telemetry, configured.retest, self._config.redact.secrets),
        )
        await runner.start()
        self._parts.push_async_callback(runner.stop)
        self.telemetry.gauge("pandaeval.queue.size", store.jobs.waiting, queue="judge")
        if configured.limits.daily_usd is not None:
            self.telemetry.gauge("pandaeval.judge.budget.limit", lambda: configured.limits.daily_usd or 0.0)
            self.telemetry.gauge(
                "pandaeval.judge.budget.spent", lambda: store.jobs.spent(store.jobs.today(time.time()))
            )

    async def _open_outlets(self, store: Store) -> Outlets:
        config = self._config
        if config.exporters.scrape_results:
            self._scrape = Scrape(self.telemetry, ZeroFirst(store, "scrape", config.exporters.otlp.metrics_interval))
        around = Surroundings(store, self.telemetry, self._environ, await instance_id(store))
        outlets = Outlets(config, around)
        await outlets.start()
        self._parts.push_async_callback(outlets.stop)
        return outlets

    async def _stop_pipeline(self, pipeline: Pipeline, store: Store) -> None:
        decide = self._config.store.on_shutdown == "decide"
        await pipeline.stop(decide and not await asyncio.to_thread(store.look))

    def _fail(self) -> None:
        self.has_failed = True
        self._on_failure()

    @property
    def _trouble(self) -> str:
        return "" if self._guard is None else self._guard.trouble

    def _stages(self) -> Mapping[str, bool]:
        return self._ready | {"store": self._ready["store"] and not self._trouble}

    def _metrics(self, accept: str) -> tuple[str, AsyncGenerator[bytes, None]]:
        return self._scrape.answer(accept)


async def _unless_gone(store: Store, work: Callable[[], Awaitable[object]]) -> None:
    if not store.gone:
        await work()

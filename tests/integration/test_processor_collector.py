"""Span processor and collector process together."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pandaeval_otel import PandaEvalLogProcessor, session_end, using_session, wait_for_result, watch_results
from support.agents import run_agent, scored
from support.collector import CollectorProcess
from support.made_traces import Composer
from support.processors import Recording, emit, processor, provider, until, witness
from support.senders import GrpcSender

_DETAILS = "gen_ai.client.inference.operation.details"
_FORKING = Path(__file__).parents[1] / "support" / "forking.py"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    # Long timeouts, so that only the application completes traces and sessions.
    waits = {"PANDAEVAL_CLOSE__QUIET": "60s", "PANDAEVAL_CLOSE__IDLE": "60s", "PANDAEVAL_SESSION__IDLE": "60s"}
    with CollectorProcess(tmp_path_factory.mktemp("collector"), waits) as collector:
        yield collector.start()


@pytest.fixture
def telemetry() -> Recording:
    return Recording()


@pytest.fixture
def tracing(running: CollectorProcess, telemetry: Recording) -> Iterator[TracerProvider]:
    made = provider(processor(running.grpc, telemetry))
    yield made
    made.shutdown()


def all_scored(collector: CollectorProcess, trace_ids: set[str]) -> None:
    collector.until(lambda: trace_ids <= scored(collector.results()), "done with all traces")
    triggers = {each["trigger"] for each in collector.results() if each["trace_id"] in trace_ids}
    assert triggers == {"explicit"}


class TestConcurrency:
    def test_traces_of_sequential_code_are_scored(
        self, running: CollectorProcess, tracing: TracerProvider, telemetry: Recording
    ) -> None:
        sent = {run_agent(tracing.get_tracer("t"), seed) for seed in range(10)}
        assert tracing.force_flush()
        assert telemetry["traces", "acknowledged", ""] == len(sent) == 10
        all_scored(running, sent)

    async def test_traces_of_asyncio_tasks_are_scored_with_their_sessions(
        self, running: CollectorProcess, tracing: TracerProvider
    ) -> None:
        async def one(seed: int) -> str:
            with using_session(f"task {seed}"):
                await asyncio.sleep(0)
                return run_agent(tracing.get_tracer("t"), seed)

        sent = set(await asyncio.gather(*map(one, range(10))))
        assert await asyncio.to_thread(tracing.force_flush)
        await asyncio.to_thread(all_scored, running, sent)
        sessions = {each["session_id"] for each in running.results() if each["trace_id"] in sent}
        assert sessions == {f"task {seed}" for seed in range(10)}

    def test_traces_of_threads_are_scored(
        self, running: CollectorProcess, tracing: TracerProvider, telemetry: Recording
    ) -> None:
        with ThreadPoolExecutor(8) as pool:
            sent = set(pool.map(lambda seed: run_agent(tracing.get_tracer("t"), seed), range(80)))
        assert tracing.force_flush()
        assert telemetry["traces", "acknowledged", ""] == len(sent) == 80
        all_scored(running, sent)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_traces_of_forked_processes_are_scored(self, running: CollectorProcess, tmp_path: Path) -> None:
        done = subprocess.run(
            [sys.executable, str(_FORKING), running.grpc],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == 4
        for line in lines:
            assert line["balance"] == line["dropped"] == 0
            assert line["acknowledged"] > 0
        assert len({line["pid"] for line in lines}) == 4
        running.until(
            lambda: {id_ for line in lines for id_ in line["traces"]} <= scored(running.results()), "done with all"
        )


class TestSameResults:
    def test_processor_and_otlp_exporter_give_equal_results(self, tmp_path: Path, telemetry: Recording) -> None:
        with CollectorProcess(tmp_path / "a") as by_otlp, CollectorProcess(tmp_path / "b") as by_us:
            by_otlp.start()
            by_us.start()
            exporter = OTLPSpanExporter(by_otlp.grpc, insecure=True)
            tracing = provider(BatchSpanProcessor(exporter), processor(by_us.grpc, telemetry))
            logs = LoggerProvider(shutdown_on_exit=False)
            logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(by_otlp.grpc, insecure=True)))
            logs.add_log_record_processor(PandaEvalLogProcessor(by_us.grpc, telemetry=telemetry, shutdown_timeout=5.0))
            for session in ("one", "two"):
                with using_session(session):
                    sent = {run_agent(tracing.get_tracer("t"), seed) for seed in range(4)}
                    with tracing.get_tracer("t").start_as_current_span("chat small") as span:
                        messages = [{"role": "assistant", "parts": [{"type": "text", "content": "Told by an event."}]}]
                        emit(
                            logs, span, None, **{"event.name": _DETAILS, "gen_ai.output.messages": json.dumps(messages)}
                        )
            logs.shutdown()
            tracing.shutdown()
            assert telemetry["logs", "acknowledged", ""] == 2
            for collector in (by_otlp, by_us):
                collector.until(lambda each=collector: sent <= scored(each.results()), "done")
                collector.until(collector.at_rest, "at rest")
            ours, theirs = by_us.standing(), by_otlp.standing()
            assert {key: (each["id"], each["score"], each["why"]) for key, each in ours.items()} == {
                key: (each["id"], each["score"], each["why"]) for key, each in theirs.items()
            }
            assert {level.partition(".")[0] for _, level in ours} == {"trace", "session"}

    def test_a_trace_sent_by_processor_and_otlp_to_one_collector_is_scored_once(
        self, tmp_path: Path, telemetry: Recording
    ) -> None:
        with CollectorProcess(tmp_path) as collector:
            collector.start()
            exporter = OTLPSpanExporter(collector.grpc, insecure=True)
            tracing = provider(BatchSpanProcessor(exporter), processor(collector.grpc, telemetry))
            sent = {run_agent(tracing.get_tracer("t"), seed) for seed in range(5)}
            tracing.shutdown()
            collector.until(lambda: sent <= scored(collector.results()), "done")
            collector.until(collector.at_rest, "at rest")
            assert {each["revision"] for each in collector.results()} == {1}
            counts = collector.counts()
            assert counts["spans", "stored", ""] == counts["spans", "duplicate", ""] == 20


class TestResults:
    def test_wait_for_result_returns_the_result_of_a_trace(
        self, running: CollectorProcess, tracing: TracerProvider
    ) -> None:
        trace_id = run_agent(tracing.get_tracer("t"), 1)
        found = wait_for_result(trace_id, "coherence", 120, endpoint=running.grpc)
        assert (found["trace_id"], found["metric"]) == (trace_id, "coherence")
        assert wait_for_result(int(trace_id, 16), "trace.coherence", 120, endpoint=running.grpc) == found

    def test_wait_for_result_times_out_without_a_result(self, running: CollectorProcess) -> None:
        with pytest.raises(TimeoutError, match=rf"no result of coherence for trace {1:032x} within 0\.3 s"):
            wait_for_result(1, "coherence", 0.3, endpoint=running.grpc)

    async def test_session_end_closes_the_session_and_watchers_get_its_results(
        self, running: CollectorProcess, tracing: TracerProvider
    ) -> None:
        tracer = tracing.get_tracer("t")
        found: list[dict[str, Any]] = []
        ready = asyncio.Event()

        async def watch() -> None:
            async for result in watch_results(session="ends", endpoint=running.grpc):
                found.append(result)
                ready.set()
                if result["level"] == "session":
                    return

        watching = asyncio.create_task(watch())
        with using_session("ends"):
            run_agent(tracer, 1)
        await asyncio.wait_for(ready.wait(), 120)
        interim = _session(running, "ends")
        assert (interim["open"], len(interim["members"])) == (True, 1)
        with using_session("ends"):
            run_agent(tracer, 2)
            session_end()
        await asyncio.wait_for(watching, 120)
        assert [each["cursor"] for each in found] == sorted(each["cursor"] for each in found)
        assert found[-1]["metadata"]["total_traces_in_session"] == 2
        assert found[-1]["trigger"] == "explicit"
        final = _session(running, "ends")
        assert (final["open"], len(final["members"])) == (False, 2)
        behind = watch_results(session="ends", after=found[-2]["cursor"], endpoint=running.grpc)
        assert (await anext(behind))["id"] == found[-1]["id"]
        await behind.aclose()  # type: ignore[attr-defined]

    @pytest.mark.slow
    async def test_a_watcher_continues_after_a_restart_of_the_collector(
        self, tmp_path: Path, telemetry: Recording
    ) -> None:
        with CollectorProcess(tmp_path) as collector:
            await asyncio.to_thread(collector.start)
            tracing = provider(processor(collector.grpc, telemetry))
            seen: list[int] = []

            async def watch() -> None:
                async for result in watch_results(metric="coherence", endpoint=collector.grpc):
                    seen.append(result["cursor"])
                    if len(seen) == 2:
                        return

            watching = asyncio.create_task(watch())
            run_agent(tracing.get_tracer("t"), 1)
            await asyncio.to_thread(until, lambda: seen)
            assert await asyncio.to_thread(collector.stop) == 0
            await asyncio.to_thread(collector.start)
            run_agent(tracing.get_tracer("t"), 2)
            await asyncio.wait_for(watching, 60)
            assert seen == sorted(set(seen))
            await asyncio.to_thread(tracing.shutdown)


@pytest.mark.parametrize(
    "point",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("before_decide:1", "after_decide:2")),
        "after_decision_commit:1",
    ],
)
def test_completed_traces_and_ended_sessions_survive_kill_9(point: str, tmp_path: Path, telemetry: Recording) -> None:
    """Completed traces and sessions survive kills."""
    waits = {f"PANDAEVAL_{key}": "1h" for key in ("CLOSE__QUIET", "CLOSE__IDLE", "CLOSE__MAX_AGE", "SESSION__IDLE")}
    with CollectorProcess(tmp_path, waits) as collector:
        collector.start(PANDAEVAL_FAIL_POINT=point)
        tracing = provider(processor(collector.grpc, telemetry))
        with using_session("over"):
            trace_id = run_agent(tracing.get_tracer("t"))
            session_end()
        tracing.shutdown()
        assert telemetry["traces", "acknowledged", ""] == 1
        assert collector.wait(60) == -9
        collector.start()
        collector.until(
            lambda: any(each["level"] == "session" for each in collector.results()), "done with the session"
        )
        collector.until(collector.at_rest, "at rest")
        assert collector.stop() == 0
        collector.start()
        assert {each["trigger"] for each in collector.results()} == {"explicit"}
        assert {each["trace_id"] for each in collector.results() if each["level"] == "trace"} == {trace_id}
        sessions = [each["id"] for each in collector.results() if each["level"] == "session"]
        assert len(sessions) == len(set(sessions))


def _sync(tracing: TracerProvider, sent: list[str], stop: threading.Event) -> None:
    while not stop.wait(0.01):
        sent.append(run_agent(tracing.get_tracer("t"), len(sent)))


def _asyncio(tracing: TracerProvider, sent: list[str], stop: threading.Event) -> None:
    async def one() -> None:
        while not stop.is_set():
            sent.append(run_agent(tracing.get_tracer("t"), len(sent)))
            await asyncio.sleep(0.04)

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(4)))

    asyncio.run(all_of_them())


def _threads(tracing: TracerProvider, sent: list[str], stop: threading.Event) -> None:
    with ThreadPoolExecutor(4) as pool:
        for work in [pool.submit(_slowly, tracing, sent, stop) for _ in range(4)]:
            work.result()


def _slowly(tracing: TracerProvider, sent: list[str], stop: threading.Event) -> None:
    while not stop.wait(0.04):
        sent.append(run_agent(tracing.get_tracer("t"), 7))


def kill_again_and_again(collector: CollectorProcess) -> None:
    for _ in range(2):
        time.sleep(0.5)
        collector.kill()
        time.sleep(0.5)
        collector.start()


class Application:
    """A tracing thread. ``taken``: acknowledged traces."""

    def __init__(self, endpoint: str, work: Callable[..., None]) -> None:
        self.telemetry, self.sent = Recording(), list[str]()
        ours = processor(endpoint, self.telemetry, buffer_bytes=60_000, shutdown_timeout=60.0)
        self.taken, self._tracing = witness(ours), provider(ours)
        self._stop = threading.Event()
        self._running = threading.Thread(target=work, args=(self._tracing, self.sent, self._stop))
        self._running.start()

    def end(self) -> None:
        self._stop.set()
        self._running.join()
        self._tracing.shutdown()


class TestTrouble:
    @pytest.mark.slow
    def test_no_acknowledged_trace_is_lost_if_the_collector_is_killed_repeatedly(self, tmp_path: Path) -> None:
        with CollectorProcess(tmp_path) as collector:
            collector.start()
            applications = [Application(collector.grpc, work) for work in (_sync, _asyncio, _threads)]
            try:
                kill_again_and_again(collector)
            finally:
                for each in applications:
                    each.end()
            for each in applications:
                telemetry = each.telemetry
                assert telemetry["spans", "ended", ""] == 4 * len(each.sent)
                assert telemetry.balance() == 0
                assert telemetry.of("traces", "acknowledged") == len(each.taken)
                assert len(each.sent) == len(each.taken) + telemetry.of("traces", "dropped")
                assert telemetry["traces", "dropped", "buffer_full"] > 0
                assert each.taken < set(each.sent)
            taken = {trace_id for each in applications for trace_id in each.taken}
            collector.until(lambda: taken <= scored(collector.results()), "done with what it acknowledged")

    @pytest.mark.slow  # fast variants: the test of forks above, and test_kill.py
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
    def test_no_acknowledged_trace_of_forked_processes_is_lost_if_the_collector_is_killed(self, tmp_path: Path) -> None:
        stop = tmp_path / "stop"
        with CollectorProcess(tmp_path / "collector") as collector:
            collector.start()
            application = subprocess.Popen(
                [sys.executable, str(_FORKING), collector.grpc, str(stop)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            try:
                collector.until(lambda: bool(collector.results()), "heard of by the application")
                kill_again_and_again(collector)
            finally:
                stop.touch()
                output, errors = application.communicate(timeout=120)
            assert application.returncode == 0, errors.decode()[-3000:]
            books = [json.loads(line) for line in output.splitlines()]
            assert len({each["pid"] for each in books}) == len(books) == 4
            for each in books:
                assert each["balance"] == 0
                assert len(each["traces"]) == len(each["taken"]) + each["dropped_traces"]
                assert set(each["taken"]) <= set(each["traces"])
            taken = {trace_id for each in books for trace_id in each["taken"]}
            assert sum(each["dropped_traces"] for each in books) > 0
            assert len(taken) == sum(len(each["taken"]) for each in books) > 0
            collector.until(lambda: taken <= scored(collector.results()), "done with what it acknowledged")

    def test_traces_wait_for_an_overloaded_store_until_shutdown(self, tmp_path: Path, telemetry: Recording) -> None:
        settings = {"PANDAEVAL_STORE__MAX_BYTES": "2MiB", "PANDAEVAL_CLOSE__IDLE": "30m"}
        with CollectorProcess(tmp_path, settings) as collector:
            collector.start()
            _fill(collector)
            tracing = provider(processor(collector.grpc, telemetry, shutdown_timeout=0.5))
            run_agent(tracing.get_tracer("t"))
            assert not tracing.force_flush(1500)
            assert telemetry.of("traces", "dropped") == 0
            tracing.shutdown()
            assert telemetry["traces", "dropped", "shutdown"] == 1


def _fill(collector: CollectorProcess) -> None:
    """Send spans of open traces until the store is full."""
    chance, composer, door = random.Random(1), Composer(1), GrpcSender(collector.grpc)
    while True:
        trace = composer.trace(3)
        trace.spans[0].attributes.add(key="noise").value.string_value = chance.randbytes(100_000).hex()
        if not door.send(trace.request(trace.spans[:-1])).acknowledged:
            return door.close()


def _session(collector: CollectorProcess, session_id: str) -> Any:
    return httpx.get(f"{collector.http}/api/v1/sessions/{session_id}", timeout=60).raise_for_status().json()

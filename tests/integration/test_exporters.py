"""Results to OTLP sinks through outages and restarts."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.base.runtime.every import Backoff
from pandaeval_collector.config import load
from pandaeval_collector.exporters._otlp import transport
from pandaeval_collector.exporters.delivery import outbox as outlet
from pandaeval_otel.base.names import MAX_NAME_CHARS
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.judged_files import MODEL
from support.made_traces import Composer
from support.otlp_sink import (
    HANG,
    INVALID,
    UNAVAILABLE,
    UNIMPLEMENTED,
    Answer,
    OtlpSink,
    attributes,
    items,
    slow_down,
    too_large,
)
from support.ports import free_ports
from support.receivers import grpc_client, http_client, until
from support.scripted_judge import GOOD, scripted_reply

TRACES = 12
MEGABYTE = "x" * (1 << 20)
ITEMS = ("logs", "traces")
both_protocols = pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
either_protocol = pytest.mark.parametrize("protocol", ["grpc", pytest.param("http/protobuf", marks=pytest.mark.slow)])
"""Shared code; the second variant is slow."""
both_signals = pytest.mark.parametrize("signal", ["logs", "traces"])


@pytest.fixture(autouse=True)
def _brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "Backoff", functools.partial(Backoff, 0.02, 0.1))


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the sink timeout to 0.5 s."""
    monkeypatch.setattr(transport, "TIMEOUT_S", 0.5)


impatient = pytest.mark.usefixtures("_impatient")
TROUBLES = (UNAVAILABLE, INVALID, UNIMPLEMENTED)


class House:
    """A collector in this process and a sink. ``settings``: keys as in variables."""

    def __init__(self, folder: Path, protocol: str, **settings: str) -> None:
        self.sink = OtlpSink()
        self._ports = dict(zip(("grpc", "http/protobuf"), free_ports(2), strict=True))
        self._lines = folder / "results.jsonl"
        otlp = {"ENDPOINT": f"127.0.0.1:{self._ports[protocol]}", "PROTOCOL": protocol, "METRICS_INTERVAL": "100ms"}
        self.settings = {
            **{f"SERVER__{door}": "127.0.0.1:0" for door in ("GRPC", "HTTP", "HEALTH")},
            "CLOSE__QUIET": "100ms",
            "CLOSE__IDLE": "300ms",
            "SESSION__IDLE": "100ms",
            "STORE__PATH": str(folder / "data"),
            "EXPORTERS__JSONL__PATH": str(self._lines),
            **{f"EXPORTERS__OTLP__{key}": value for key, value in otlp.items()},
            **settings,
        }
        self._collector: Collector | None = None

    @property
    def collector(self) -> Collector:
        assert self._collector is not None
        return self._collector

    async def open_sink(self) -> None:
        await self.sink.listen(*self._ports.values())

    async def start(self, **environ: str) -> None:
        config = load(None, {f"PANDAEVAL_{key}": value for key, value in self.settings.items()} | environ)
        self._collector = Collector(config, environ)
        listening = await self._collector.start()
        self.grpc, self.health = listening.grpc, listening.health

    async def stop(self) -> None:
        if self._collector is not None:
            collector, self._collector = self._collector, None
            await collector.stop()

    async def export(self, *requests: ExportTraceServiceRequest) -> None:
        async with grpc_client(self.grpc) as (door, _):
            for request in requests:
                await door.Export(request)

    async def send(self, seed: int = 1) -> None:
        composer = Composer(seed)
        await self.export(*(composer.trace(4).request() for _ in range(TRACES)))
        await until(lambda: self.collector.at_rest)

    async def send_and_wait(self, *signals: str, seed: int = 1) -> None:
        await self.send(seed)
        await until(lambda: all(self.arrived(signal).keys() == set(self.result_ids()) for signal in signals or ITEMS))

    # -- outcomes ------------------------------------------------------------------------------------------------

    def has_judged(self) -> bool:
        """Return whether no judge call waits. Details follow the verdict of a session."""
        with contextlib.closing(sqlite3.connect(Path(self.settings["STORE__PATH"]) / "pandaeval.db")) as store:
            (waiting,) = store.execute("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')").fetchone()
        return waiting == 0 and self.collector.at_rest and len(self.results()) > 0

    def results(self) -> list[dict[str, Any]]:
        """Return the complete lines of the results file."""
        text = self._lines.read_bytes()
        return [orjson.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    def judged_of_traces(self) -> list[dict[str, Any]]:
        return [each for each in self.results() if "judge" in each["metadata"] and each["level"] != "session"]

    def result_ids(self) -> Counter[str]:
        return Counter(result["id"] for result in self.results())

    def arrived(self, signal: str) -> Counter[str]:
        """Return deliveries by result ID."""
        return Counter(facts["pandaeval.result.id"] for facts in self.sink.evaluations(signal))

    def exported(self, signal: str) -> Counter[str]:
        """Return item counts by outcome."""
        found: Counter[str] = Counter()
        for measure in self.collector.telemetry.measures():
            about = dict(measure.attributes)
            if measure.instrument.name == "pandaeval.exporter.items" and about["pandaeval.signal"] == signal:
                found[about.get("pandaeval.reason", about["pandaeval.outcome"])] += int(measure.value)
        return found

    def gauge(self, name: str, **about: str) -> float:
        wanted = {f"pandaeval.{key}": value for key, value in about.items()}.items()
        measures = [each for each in self.collector.telemetry.measures() if each.instrument.name == name]
        [value] = [measure.value for measure in measures if wanted <= dict(measure.attributes).items()]
        return value

    def residual(self) -> float:
        return self.gauge("pandaeval.accounting.residual")

    def state(self, signal: str) -> float:
        return self.gauge("pandaeval.exporter.state", signal=signal)


Build = Callable[..., contextlib.AbstractAsyncContextManager[House]]


@pytest.fixture
def house(tmp_path: Path) -> Build:
    @contextlib.asynccontextmanager
    async def build(protocol: str = "grpc", sink: bool = True, **settings: str) -> AsyncIterator[House]:
        made = House(tmp_path, protocol, **settings)
        if sink:
            await made.open_sink()
        await made.start()
        try:
            yield made
        finally:
            await made.stop()
            await made.sink.hang_up()

    return build


class TestThreeSurfaces:
    @both_protocols
    async def test_every_result_is_in_logs_spans_and_metrics_with_one_id(self, house: Build, protocol: str) -> None:
        # Otherwise a session is scored before its last trace arrives, and again afterwards.
        async with house(protocol, SESSION__IDLE="3s") as made:
            await made.send_and_wait()
            assert set(made.result_ids().values()) == {1}
            logs, spans = made.sink.logs(), made.sink.spans()
            evaluated = {(log.trace_id, log.span_id) for log in logs}
            below = [span for span in spans if span.parent_span_id]
            assert below
            blamed = {(s.trace_id, link.span_id) for s in below if s.name.startswith("✗") for link in s.links}
            assert {(s.trace_id, s.parent_span_id) for s in below} <= evaluated | blamed
            await until(lambda: made.sink.counted("pandaeval.evaluations") == len(logs))
            scores = made.sink.metrics("pandaeval.evaluation.score")[-1].histogram
            assert scores.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
            exemplars = [each for point in scores.data_points for each in point.exemplars]
            assert exemplars
            assert {(each.trace_id, each.span_id) for each in exemplars} <= evaluated

    @either_protocol
    async def test_all_signals_have_the_same_resource_and_scope_after_a_restart(
        self, house: Build, protocol: str
    ) -> None:
        async with house(protocol) as made:
            await made.send_and_wait()
            await made.stop()
            await made.start()
            await until(lambda: len({str(each) for each in made.sink.speakers("metrics")}) > 0)
            speakers = [each for signal in (*ITEMS, "metrics") for each in made.sink.speakers(signal)]
            assert all(each == speakers[0] for each in speakers), "equal after the restart"
            resource, scope = speakers[0]
            assert resource["service.name"] == "pandaeval"
            assert len(resource["service.instance.id"]) == 36
            assert scope == "pandaeval.evaluation"

    @either_protocol
    async def test_headers_come_from_the_environment(self, house: Build, protocol: str) -> None:
        async with house(protocol, EXPORTERS__OTLP__HEADERS_ENV="SINK_HEADERS") as made:
            await made.stop()
            await made.start(SINK_HEADERS="X-Tenant=blue%20team,authorization=Bearer abc")
            await made.send_and_wait()
            assert {header["x-tenant"] for header in made.sink.headers[-3:]} == {"blue team"}
            assert made.sink.headers[-1]["authorization"] == "Bearer abc"

    @pytest.mark.parametrize(("setting", "code"), [("error", 2), ("unset", 0)])
    async def test_failures_are_visible_in_span_names_and_status(self, house: Build, setting: str, code: int) -> None:
        async with house("grpc", SPANS__FAILED_STATUS=setting, UI__URL="https://scores.example/") as made:
            await made.send_and_wait()
            failed = {result["id"] for result in made.results() if result["success"] is False}
            for span in made.sink.spans():
                facts = attributes(span.attributes)
                holds = {attributes(event.attributes)["pandaeval.result.id"] for event in span.events}
                assert (facts["pandaeval.verdict"] == "fail") == span.name.startswith("✗ ") == bool(failed & holds)
                assert span.status.code == (code if failed & holds else 0)
                assert facts["pandaeval.url"].startswith("https://scores.example/#/")
            assert failed
            assert all(facts["pandaeval.url"] for facts in made.sink.evaluations("logs"))

    async def test_judged_results_of_a_trace_are_exported_as_one_span(self, house: Build) -> None:
        """A span passes only if no result of the trace failed."""
        kind = {"reason": "It did not waver.", "confidence": 0.9}
        answers = {**GOOD, "confidence": kind, "verbosity": {"reason": "Short.", "rating": 4}}
        with JudgeServer(
            lambda number, body: JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), answers))
        ) as judge:
            settings = {"MODEL": MODEL, "API_BASE": judge.url, "API_KEY_ENV": "JUDGE_KEY", "DELAY": "0s"}
            async with house("grpc") as made:
                await made.stop()
                made.settings |= {f"JUDGE__{name}": value for name, value in settings.items()}
                await made.start(JUDGE_KEY="sk-test")
                await made.send_and_wait()
                await until(lambda: len(made.judged_of_traces()) > 3)  # details follow the verdict of the session
                await until(made.has_judged)
                await until(lambda: made.arrived("traces").keys() == set(made.result_ids()))
                spans = [span for span in made.sink.spans() if span.parent_span_id]
        of_judges = {each["id"]: bytes.fromhex(each["trace_id"]) for each in made.judged_of_traces()}
        judged: dict[bytes, list[str]] = {}
        for span in spans:
            held = {attributes(event.attributes)["pandaeval.result.id"] for event in span.events} & of_judges.keys()
            if held:
                assert held == {id_ for id_, trace_id in of_judges.items() if trace_id == span.trace_id}
                judged.setdefault(span.trace_id, []).append(span.name)
        assert max(sum(trace_id == each for each in of_judges.values()) for trace_id in judged) > 3
        assert {len(names) for names in judged.values()} == {1}
        assert ["✓ evaluate judged"] in judged.values()
        passing = {(s.trace_id, s.name) for s in spans if attributes(s.attributes).get("pandaeval.verdict") == "pass"}
        assert not {trace_id for trace_id, _ in passing} & {
            bytes.fromhex(each["trace_id"])
            for each in made.results()
            if each["success"] is False and each["level"] != "session"
        }
        assert {name for trace_id, name in passing if trace_id in judged} == {"✓ evaluate judged"}

    async def test_every_signal_can_have_its_own_sink(self, house: Build) -> None:
        other = OtlpSink()
        grpc_port, _ = await other.listen()
        own = {
            "EXPORTERS__OTLP__LOGS__ENDPOINT": f"http://127.0.0.1:{grpc_port}",
            "EXPORTERS__OTLP__METRICS__ENABLED": "false",
        }
        async with house("grpc", **own) as made:
            await made.send_and_wait("traces")
            await until(lambda: len(other.logs()) == len(made.results()))
            assert not made.sink.requests["logs"]
            assert not made.sink.requests["metrics"]
        await other.hang_up()

    async def test_exported_results_that_come_back_are_ignored(self, house: Build) -> None:
        async with house() as made:
            await made.send_and_wait()
            before = made.result_ids()
            count = made.collector.telemetry.total
            decided = count("pandaeval.traces", "decided")
            async with grpc_client(made.grpc) as (traces, logs):
                for request in made.sink.requests["traces"]:
                    await traces.Export(ExportTraceServiceRequest.FromString(request))
                for request in made.sink.requests["logs"]:
                    await logs.Export(ExportLogsServiceRequest.FromString(request))
            assert made.gauge("pandaeval.traces.open") == 0
            assert count("pandaeval.spans", "own_output") == len(made.sink.items("traces"))
            assert count("pandaeval.logs", "own_output") == len(made.sink.items("logs"))
            await made.send(seed=2)
            assert count("pandaeval.traces", "decided") == decided + TRACES
            assert before.keys() < made.result_ids().keys()


class TestOutages:
    @either_protocol
    async def test_a_sink_gets_all_results_after_an_outage(self, house: Build, protocol: str) -> None:
        async with house(protocol, sink=False) as made:
            await made.send()
            await until(lambda: [made.state(signal) for signal in (*ITEMS, "metrics")] == [0, 0, 0])
            await made.stop()
            await made.start()
            await made.send(seed=2)
            await made.open_sink()
            await until(lambda: all(made.arrived(signal) == made.result_ids() for signal in ITEMS))
            await until(lambda: made.sink.counted("pandaeval.evaluations") == len(made.results()))
            await until(lambda: [made.state(signal) for signal in (*ITEMS, "metrics")] == [1, 1, 1])

    @impatient
    @either_protocol
    @pytest.mark.parametrize("answer", [UNAVAILABLE, HANG, slow_down(0.0)], ids=["unavailable", "hang", "slow_down"])
    async def test_a_retry_sends_the_same_bytes(self, house: Build, protocol: str, answer: Answer) -> None:
        async with house(protocol) as made:
            for signal in ITEMS:
                made.sink.answers[signal].extend([answer] * 2)
            await made.send_and_wait()
            for signal in ITEMS:
                assert len(made.sink.seen[signal]) >= len(made.sink.requests[signal]) + 2
                taken = set(made.sink.items(signal))
                assert {item for request in made.sink.seen[signal] for item in items(request)} == taken
            await until(lambda: all(made.exported(s) == {"sent": len(set(made.sink.items(s)))} for s in ITEMS))

    async def test_no_log_is_sent_twice_after_a_restart(self, house: Build) -> None:
        async with house() as made:
            await made.send_and_wait()
            await made.stop()
            await made.start()
            await made.send_and_wait(seed=2)
            assert set(made.arrived("logs").values()) == {1}

    @impatient
    @both_signals
    @pytest.mark.parametrize("trouble", [HANG, *(pytest.param(each, marks=pytest.mark.slow) for each in TROUBLES)])
    async def test_an_outage_of_one_signal_does_not_affect_the_other(
        self, house: Build, signal: str, trouble: Answer
    ) -> None:
        [other] = set(ITEMS) - {signal}
        async with house() as made:
            made.sink.always[signal] = trouble
            await made.send_and_wait(other)
            assert made.state(other) == 1
            assert not made.sink.requests[signal]


class TestRefusals:
    @either_protocol
    @both_signals
    async def test_a_signal_that_the_sink_does_not_implement_is_switched_off(
        self, house: Build, protocol: str, signal: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with house(protocol) as made:
            made.sink.always[signal] = UNIMPLEMENTED
            await made.send()
            await until(lambda: made.exported(signal)["unimplemented"] > 0)
            await made.send(seed=2)
            await until(lambda: made.gauge("pandaeval.queue.size", queue=f"outbox.{signal}") == 0)
            assert made.state(signal) == -1
            assert len(made.sink.seen[signal]) == 1
            records = [record for record in caplog.records if "is switched off" in record.message]
            assert len(records) == 1
            assert f"exporters.otlp.{signal}.enabled" in records[0].message

    @either_protocol
    async def test_metrics_are_switched_off_if_the_sink_does_not_implement_them(
        self, house: Build, protocol: str
    ) -> None:
        async with house(protocol) as made:
            before = len(made.sink.seen["metrics"])  # the first export may have happened
            made.sink.always["metrics"] = UNIMPLEMENTED
            await made.send_and_wait()
            await until(lambda: made.state("metrics") == -1)
            assert len(made.sink.seen["metrics"]) == before + 1

    @both_protocols
    async def test_items_that_the_sink_rejects_permanently_are_skipped_and_counted(
        self, house: Build, protocol: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with house(protocol) as made:
            made.sink.answers["logs"].append(INVALID)
            await made.send()
            await made.send(seed=2)
            reason = "invalid_argument" if protocol == "grpc" else "http_400"
            await until(lambda: made.exported("logs")[reason] > 0)
            lost = made.exported("logs")[reason]
            assert lost == len(items(made.sink.seen["logs"][0]))
            await until(lambda: made.arrived("logs").total() == len(made.results()) - lost)  # sessions close later
            assert made.exported("logs")[reason] == lost
            assert sum("the sink rejects them" in record.message for record in caplog.records) == 1

    @either_protocol
    async def test_too_large_requests_are_halved_until_they_fit(self, house: Build, protocol: str) -> None:
        async with house(protocol, sink=False) as made:
            await made.send()
            made.sink.always["logs"] = too_large(3)
            made.sink.always["metrics"] = too_large(5)
            await made.open_sink()
            await until(lambda: made.arrived("logs") == made.result_ids())
            assert max(len(items(request)) for request in made.sink.requests["logs"]) <= 3
            await until(lambda: made.sink.counted("pandaeval.evaluations") == len(made.results()))

    @either_protocol
    async def test_a_single_item_that_is_too_large_is_dropped(self, house: Build, protocol: str) -> None:
        async with house(protocol) as made:
            made.sink.always["logs"] = too_large(0)
            await made.send()
            await until(lambda: made.exported("logs")["too_large"] == len(made.results()))
            assert made.state("logs") == 1

    @either_protocol
    async def test_items_rejected_by_a_partial_success_are_counted(self, house: Build, protocol: str) -> None:
        async with house(protocol) as made:
            made.sink.answers["traces"].append(Answer(rejected=1, message="no links, please"))
            await made.send()
            await until(lambda: made.exported("traces").total() == len(made.sink.spans()) > 1)
            assert made.exported("traces")["rejected_by_sink"] == 1


class TestZeroFirst:
    @either_protocol
    async def test_every_series_starts_at_zero(self, house: Build, protocol: str) -> None:
        async with house(protocol) as made:
            await made.send()
            await until(lambda: made.sink.counted("pandaeval.evaluations") == len(made.results()))
            histories = made.sink.histories("pandaeval.evaluations")
            assert len(histories) > 3
            for history in histories.values():
                assert history[0] == 0
                assert history == sorted(history), "a zero must never follow a value"

    async def test_a_stop_exports_values_that_waited_for_the_next_interval(self, house: Build) -> None:
        async with house(EXPORTERS__OTLP__METRICS_INTERVAL="1h") as made:
            await made.send()
            await made.stop()
            assert made.sink.counted("pandaeval.evaluations") == len(made.results())
            assert all(history[0] == 0 for history in made.sink.histories("pandaeval.evaluations").values())


class TestScrape:
    async def test_a_scrape_has_only_self_metrics_if_otlp_metrics_are_enabled(self, house: Build) -> None:
        async with house() as made, http_client(made.health) as client:
            await made.send_and_wait()
            families = {family.name for family in classic((await client.get("/metrics")).text)}
            assert "pandaeval_spans" in families
            assert "pandaeval_evaluations" not in families

    async def test_a_scrape_has_scores_with_exemplars_if_otlp_metrics_are_disabled(self, house: Build) -> None:
        async with house(EXPORTERS__OTLP__METRICS__ENABLED="false") as made, http_client(made.health) as client:
            await made.send_and_wait()
            asked = {"accept": "application/openmetrics-text; version=1.0.0"}
            first = (await client.get("/metrics", headers=asked)).text
            assert evaluations(first) == 0
            wanted, named = {"pandaeval_evaluation_score_bucket", "pandaeval_evaluations_total"}, set[str]()
            async with asyncio.timeout(60):
                while not named >= wanted:  # seen zeros are stored in parts, so a scrape can be incomplete
                    await asyncio.sleep(0.1)
                    text = (await client.get("/metrics", headers=asked)).text
                    samples = [s for family in openmetrics(text) for s in family.samples if s.exemplar]
                    named = {sample.name for sample in samples}
            assert evaluations(text) == len(made.results())
            known = {result["trace_id"] for result in made.results()}
            assert {sample.exemplar.labels["trace_id"] for sample in samples} <= known

    async def test_names_of_a_megabyte_are_cut_in_results_and_scrapes(self, house: Build) -> None:
        async with house(EXPORTERS__OTLP__METRICS__ENABLED="false") as made, http_client(made.health) as client:
            request = Composer(7).trace(4).request()
            request.resource_spans[0].resource.attributes[0].value.string_value = f"service\n{MEGABYTE}"
            for span in request.resource_spans[0].scope_spans[0].spans:
                for attribute in span.attributes:
                    if attribute.key == "gen_ai.agent.name":
                        attribute.value.string_value = MEGABYTE
            await made.export(request)
            await until(lambda: made.collector.at_rest and len(made.results()) > 2)
            await until(lambda: made.arrived("logs") == made.result_ids())
            assert all(len(orjson.dumps(each)) < 10_000 for each in made.results())
            assert {len(each["service"]) for each in made.results()} == {MAX_NAME_CHARS}
            assert len((await client.get("/metrics")).content) < 200_000

    async def test_the_scrape_can_be_switched_off(self, house: Build) -> None:
        async with house(EXPORTERS__PROMETHEUS__ENABLED="false") as made, http_client(made.health) as client:
            assert (await client.get("/metrics")).status_code == 404
            assert (await client.get("/readyz")).json() == dict.fromkeys(("store", "pipeline", "grpc", "http"), True)


class TestAccounting:
    async def test_accounting_balances_after_duplicates_late_spans_and_restarts(self, house: Build) -> None:
        async with house(CLOSE__QUIET="1h", CLOSE__IDLE="1h", CLOSE__MAX_AGE="1h") as made:
            trace = Composer(5).trace(6)
            late, others = trace.request(trace.spans[:1]), trace.request(trace.spans[1:])
            await made.export(others, others)
            assert made.collector.telemetry.total("pandaeval.spans", "duplicate") == 5
            assert made.residual() == 0
            await made.stop()
            made.settings |= {"CLOSE__QUIET": "100ms", "CLOSE__IDLE": "100ms"}
            await made.start()
            assert made.collector.telemetry.total("pandaeval.items", "resumed") == 5
            await until(lambda: made.gauge("pandaeval.traces.open") == 0)
            await made.export(late)
            assert (made.gauge("pandaeval.traces.open"), made.residual()) == (1, 0)
            await made.stop()
            await made.start()
            assert made.collector.telemetry.total("pandaeval.items", "resumed") == 1
            assert made.residual() == 0


def evaluations(text: str) -> float:
    samples = (sample for family in openmetrics(text) for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == "pandaeval_evaluations_total")

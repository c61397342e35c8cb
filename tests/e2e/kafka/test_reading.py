"""Spans from Kafka score like OTLP, despite kills."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import pytest

from pandaeval_collector.kafka.protocols import ReaderSettings
from support.collector import CollectorProcess
from support.kafka import Broker
from support.kafka_workers import INSTANCE, QUICK, SESSION_TIMEOUT, by_id, messages, scores, worker
from support.made_traces import Composer, MadeTrace
from support.processors import until
from support.senders import GrpcSender

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

_POINTS = ("before_commit:4", "after_commit:6", "before_decide:1", "after_decision_commit:2")


def test_a_reader_that_is_killed_and_restarted_gives_the_results_of_otlp(broker: Broker, tmp_path: Path) -> None:
    broker.create("one", 3)
    broker.create("one.scores")
    composer = Composer(31)
    traces = [composer.trace() for _ in range(60)]
    with worker(tmp_path, broker, "a", "one", "one.scores", {"PANDAEVAL_KAFKA__SESSIONS": "here"}) as reader:
        sent = list(messages(traces, parts=2))
        share = len(sent) // len(_POINTS)
        for number, point in enumerate(_POINTS):
            end = None if point == _POINTS[-1] else (number + 1) * share
            broker.produce("one", sent[number * share : end])  # before the launch, so that traces arrive whole
            reader.launch(PANDAEVAL_FAIL_POINT=point)
            until(lambda: not reader.running(), f"the death at {point}", 120)
            assert reader.exit_code() == -9, reader.log()
        reader.start()
        _until_all_is_done(reader, broker, "one", traces)
        assert reader.gauge("accounting_residual") == 0
        assert reader.stop() == 0
    found = scores(broker, "one.scores")
    assert by_id(found) == by_id(_by_otlp(tmp_path / "otlp", traces))
    broker_ends = {0: 0, 1: 0, 2: 0}
    for message in broker.everything("one"):
        broker_ends[message.partition() or 0] += 1
    assert broker.committed("readers-of-one", "one") == broker_ends, "all offsets must be committed"


def test_a_paused_reader_reads_waiting_messages_before_it_completes_traces(broker: Broker, tmp_path: Path) -> None:
    """The reader is paused between two messages of each trace."""
    broker.create("still", 3)
    broker.create("still.scores")
    composer = Composer(35)
    warm, traces = [composer.trace() for _ in range(5)], [composer.trace(4) for _ in range(20)]
    with worker(tmp_path, broker, "a", "still", "still.scores", {SESSION_TIMEOUT: "'45000'"}) as reader:
        reader.start()
        broker.produce("still", list(messages(warm)))
        _until_all_is_done(reader, broker, "still", warm)
        sent = list(messages(traces, parts=2))
        broker.produce("still", sent[: len(traces)])
        until(lambda: reader.gauge("traces_open") == len(traces), "read", 60)
        assert reader.process is not None
        reader.process.send_signal(signal.SIGSTOP)
        broker.produce("still", sent[len(traces) :])
        time.sleep(7)
        reader.process.send_signal(signal.SIGCONT)
        _until_all_is_done(reader, broker, "still", [*warm, *traces])
        assert "broke off" not in reader.log()
    twice = {each["metric"] for each in scores(broker, "still.scores") if each["revision"] > 1}
    assert twice <= {"loop_detection"}, "only results that depend on other traces may change"


def test_a_backlog_larger_than_memory_is_processed(broker: Broker, tmp_path: Path) -> None:
    broker.create("backlog", 3)
    broker.create("backlog.scores")
    composer = Composer(36)
    traces = [composer.trace(3) for _ in range(1500)]
    broker.produce("backlog", list(messages(traces)))
    settings = {"PANDAEVAL_SERVER__MAX_OPEN_BYTES": "100KB"}
    with worker(tmp_path, broker, "a", "backlog", "backlog.scores", settings) as reader:
        reader.start()
        _until_all_is_done(reader, broker, "backlog", traces)
        assert "messages wait" in reader.log()
        assert reader.gauge("accounting_residual") == 0
    assert {each["trace_id"] for each in scores(broker, "backlog.scores")} == {each.trace_id.hex() for each in traces}


def test_a_malformed_message_is_counted_and_logged(broker: Broker, tmp_path: Path) -> None:
    broker.create("poison")
    broker.create("poison.scores")
    traces = [Composer(33).trace()]
    with worker(tmp_path, broker, "a", "poison", "poison.scores") as reader:
        broker.produce("poison", [(b"key", b"no protobuf at all"), *messages(traces)])
        reader.start()
        _until_all_is_done(reader, broker, "poison", traces)
        assert reader.counts()["log_messages", "dead", "malformed"] == 1
        assert "message poison/0/0 cannot be read" in reader.log()


def test_a_reader_rejoins_the_group_after_another_one_took_its_place(broker: Broker, tmp_path: Path) -> None:
    from confluent_kafka import Consumer

    broker.create("fenced")
    broker.create("fenced.scores")
    composer = Composer(34)
    first, second = [composer.trace() for _ in range(5)], [composer.trace() for _ in range(5)]
    with worker(tmp_path, broker, "a", "fenced", "fenced.scores", {INSTANCE: "a"}) as reader:
        reader.start()
        broker.produce("fenced", list(messages(first)))
        _until_all_is_done(reader, broker, "fenced", first)
        same = ReaderSettings(
            {"bootstrap.servers": broker.address, "session.timeout.ms": "6000", "group.instance.id": "a"},
            "fenced",
            "readers-of-fenced",
            "",
        )
        other = Consumer(same.consumer())
        other.subscribe(["fenced"])
        reader.until(lambda: (other.poll(0.2), "joining the group anew" in reader.log())[1], "fenced", 60)
        other.close()
        broker.produce("fenced", list(messages(second)))
        _until_all_is_done(reader, broker, "fenced", [*first, *second])
        assert reader.stop() == 0


def _until_all_is_done(reader: CollectorProcess, broker: Broker, topic: str, traces: list[MadeTrace]) -> None:
    wanted = {trace.trace_id.hex() for trace in traces}
    reader.until(lambda: {each["trace_id"] for each in reader.results()} >= wanted, "done with all traces", 120)
    reader.until(reader.at_rest, "at rest", 120)
    ends = [message.partition() for message in broker.everything(topic)]
    group = f"readers-of-{topic}"
    reader.until(lambda: sum(broker.committed(group, topic).values()) == len(ends), "done in Kafka's eyes", 120)


def _by_otlp(folder: Path, traces: list[MadeTrace]) -> list[dict[str, object]]:
    with CollectorProcess(folder, QUICK) as collector:
        collector.start()
        with contextlib.closing(GrpcSender(collector.grpc)) as door:
            for trace in traces:
                assert door.send(trace.request()).acknowledged
        wanted = {trace.trace_id.hex() for trace in traces}
        collector.until(lambda: {each["trace_id"] for each in collector.results()} >= wanted, "scored", 120)
        collector.until(collector.at_rest, "at rest", 120)
        return collector.results()

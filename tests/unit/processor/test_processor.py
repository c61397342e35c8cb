"""The span processor against a scripted collector."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from pandaeval_otel import PandaEvalSpanProcessor, session_end, using_case, using_session, using_user
from pandaeval_otel._proto.trace_service_pb2 import (
    CLOSE_REASON_IDLE,
    CLOSE_REASON_ROOT_ENDED,
    CLOSE_REASON_SHUTDOWN,
)
from pandaeval_otel.processor.buffer import Buffer
from pandaeval_otel.processor.collecting import Part
from support.processors import (
    FakeCollector,
    Recording,
    attributes_of,
    processor,
    provider,
    refusing,
    spans_of,
    until,
)


@pytest.fixture
def telemetry() -> Recording:
    return Recording()


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as fake:
        yield fake


@pytest.fixture
def tracing(collector: FakeCollector, telemetry: Recording) -> Iterator[TracerProvider]:
    made = provider(processor(collector.endpoint, telemetry))
    yield made
    made.shutdown()


def forwarders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pandaeval-forwarder"]


class TestCompletion:
    def test_a_trace_is_sent_whole_when_its_root_ends(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        tracer = tracing.get_tracer("t")
        with tracer.start_as_current_span("root") as root, tracer.start_as_current_span("child"):
            pass
        until(lambda: collector.traces)
        (sent,) = collector.traces
        assert [span.name for span in spans_of(sent)] == ["child", "root"]
        assert sent.trace_id == root.get_span_context().trace_id.to_bytes(16, "big")
        assert (sent.reason, sent.fragment) == (CLOSE_REASON_ROOT_ENDED, False)

    def test_a_trace_waits_for_an_open_child_span(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        tracer = tracing.get_tracer("t")
        with tracer.start_as_current_span("root"):
            late = tracer.start_span("late child")
        with tracer.start_as_current_span("another trace"):
            pass
        until(lambda: collector.traces)
        late.end()
        until(lambda: len(collector.traces) == 2)
        assert [len(spans_of(sent)) for sent in collector.traces] == [1, 2]
        assert not any(sent.fragment for sent in collector.traces)

    def test_a_span_with_a_remote_parent_is_sent_as_a_fragment(
        self, tracing: TracerProvider, collector: FakeCollector
    ) -> None:
        remote = SpanContext(0xAB, 0xCD, is_remote=True, trace_flags=TraceFlags(1))
        with tracing.get_tracer("t").start_as_current_span(
            "server", context=set_span_in_context(NonRecordingSpan(remote))
        ):
            pass
        until(lambda: collector.traces)
        assert collector.traces[0].fragment
        assert collector.traces[0].reason == CLOSE_REASON_IDLE

    def test_flush_sends_ended_spans_of_open_traces_as_fragments(
        self, tracing: TracerProvider, collector: FakeCollector
    ) -> None:
        tracer = tracing.get_tracer("t")
        with tracer.start_as_current_span("root"):
            with tracer.start_as_current_span("child"):
                pass
            assert tracing.force_flush(5000)
            assert [span.name for span in spans_of(collector.traces[0])] == ["child"]
            assert collector.traces[0].fragment
        assert tracing.force_flush(5000)
        assert [span.name for span in spans_of(collector.traces[1])] == ["root"]
        assert not collector.traces[1].fragment

    def test_shutdown_sends_open_traces_as_fragments(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry))
        tracer = tracing.get_tracer("t")
        root = tracer.start_span("root")
        tracer.start_span("child", context=set_span_in_context(root)).end()
        tracing.shutdown()
        (sent,) = collector.traces
        assert (sent.fragment, sent.reason) == (True, CLOSE_REASON_SHUTDOWN)
        root.end()
        assert telemetry["spans", "dropped", "already_shutdown"] == 1
        assert telemetry.balance() == 0

    def test_two_equal_processors_send_a_trace_once(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry), processor(collector.endpoint, telemetry))
        with tracing.get_tracer("t").start_as_current_span("root"):
            pass
        tracing.shutdown()
        assert len({sent.trace_id for sent in collector.traces}) == len(collector.traces) == 1


class _RecordOnly(Sampler):
    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


class TestSampling:
    def test_unsampled_spans_are_marked(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry), sampler=_RecordOnly())
        with tracing.get_tracer("t").start_as_current_span("root"):
            pass
        tracing.shutdown()
        assert attributes_of(spans_of(collector.traces[0])[0])["pandaeval.sampled"] is False

    def test_sampled_spans_are_left_as_they_are(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        with tracing.get_tracer("t").start_as_current_span("root"):
            pass
        assert tracing.force_flush()
        assert attributes_of(spans_of(collector.traces[0])[0]) == {}


class TestStamps:
    def test_roots_are_stamped_and_children_are_not(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        tracer = tracing.get_tracer("t")
        with using_session("s"), using_user("u"), using_case("c", 3), tracer.start_as_current_span("root"):
            child = tracer.start_span("child")
            tracer.start_span("grandchild", context=set_span_in_context(child)).end()
            child.end()
        assert tracing.force_flush()
        (sent,) = collector.traces
        stamps = {span.name: attributes_of(span) for span in spans_of(sent)}
        assert stamps["root"] == {
            "pandaeval.session.id": "s",
            "pandaeval.user.id": "u",
            "pandaeval.case.id": "c",
            "pandaeval.trial": "3",
        }
        assert stamps["child"] == stamps["grandchild"] == {}
        assert (sent.session_id, sent.case_id, sent.trial) == ("s", "c", "3")

    def test_a_changed_session_is_stamped_only_on_the_first_span_below(
        self, tracing: TracerProvider, collector: FakeCollector
    ) -> None:
        tracer = tracing.get_tracer("t")
        parent = tracer.start_span("root")
        with using_session("s"):
            child = tracer.start_span("child", context=set_span_in_context(parent))
            tracer.start_span("grandchild", context=set_span_in_context(child)).end()
        child.end()
        parent.end()
        assert tracing.force_flush()
        stamps = {span.name: attributes_of(span) for span in spans_of(collector.traces[0])}
        assert stamps == {"root": {}, "child": {"pandaeval.session.id": "s"}, "grandchild": {}}

    def test_the_session_id_is_read_from_baggage(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        context = baggage.set_baggage("session.id", "from afar", Context())
        tracing.get_tracer("t").start_span("root", context=context).end()
        assert tracing.force_flush()
        assert attributes_of(spans_of(collector.traces[0])[0]) == {"pandaeval.session.id": "from afar"}

    def test_using_session_overrides_baggage(self, tracing: TracerProvider, collector: FakeCollector) -> None:
        with using_session("here"):
            context = baggage.set_baggage("session.id", "from afar")
            tracing.get_tracer("t").start_span("root", context=context).end()
        assert tracing.force_flush()
        assert attributes_of(spans_of(collector.traces[0])[0]) == {"pandaeval.session.id": "here"}

    def test_a_session_end_in_a_trace_is_sent_with_the_trace(
        self, tracing: TracerProvider, collector: FakeCollector
    ) -> None:
        with using_session("s"), tracing.get_tracer("t").start_as_current_span("root"):
            session_end()
        assert tracing.force_flush()
        assert [(sent.session_id, sent.session_end) for sent in collector.traces] == [("s", True)]

    def test_a_session_end_outside_a_trace_is_sent_without_a_trace_id(
        self, tracing: TracerProvider, collector: FakeCollector
    ) -> None:
        with tracing.get_tracer("t").start_as_current_span("root"):
            pass
        session_end("over")
        assert tracing.force_flush()
        last = collector.traces[-1]
        assert (last.trace_id, last.session_id, last.session_end) == (b"", "over", True)


class TestFailures:
    def test_a_temporarily_refused_request_is_sent_again(self, collector: FakeCollector, telemetry: Recording) -> None:
        delay = Duration()
        delay.FromMilliseconds(50)
        hint = b"\x0a" + bytes([delay.ByteSize()]) + delay.SerializeToString()
        collector.script.append(refusing(grpc.StatusCode.RESOURCE_EXHAUSTED, ("google.rpc.retryinfo-bin", hint)))
        collector.script.append(refusing(grpc.StatusCode.UNAVAILABLE))
        tracing = provider(processor(collector.endpoint, telemetry))
        tracing.get_tracer("t").start_span("root").end()
        assert tracing.force_flush(20_000)
        assert len(collector.traces) == 1
        assert telemetry["spans", "acknowledged", ""] == 1
        tracing.shutdown()

    @pytest.mark.parametrize("code", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED])
    def test_a_permanently_refused_trace_is_counted_as_dropped(
        self, collector: FakeCollector, telemetry: Recording, code: grpc.StatusCode
    ) -> None:
        collector.script.append(refusing(code))
        tracing = provider(processor(collector.endpoint, telemetry))
        tracing.get_tracer("t").start_span("root").end()
        assert not tracing.force_flush()
        assert telemetry["traces", "dropped", code.name.lower()] == 1
        tracing.shutdown()
        assert telemetry.balance() == 0

    def test_a_batch_that_is_too_large_is_sent_in_parts(self, telemetry: Recording) -> None:
        with FakeCollector(max_bytes=60_000) as collector:
            tracing = provider(processor(collector.endpoint, telemetry))
            for number in range(20):
                tracing.get_tracer("t").start_span("root", attributes={"text": f"{number}" + "x" * 10_000}).end()
            assert tracing.force_flush()
            assert len(collector.traces) == 20
            tracing.shutdown()

    def test_rejected_and_acknowledged_traces_are_counted_separately(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        tracing = provider(processor(collector.endpoint, telemetry))
        root = tracing.get_tracer("t").start_span("root")
        trace_id = root.get_span_context().trace_id.to_bytes(16, "big")
        collector.script.append(lambda _: {trace_id: "late"})
        root.end()
        tracing.get_tracer("t").start_span("root").end()
        tracing.shutdown()
        assert telemetry["traces", "rejected", "late"] == telemetry["traces", "acknowledged", ""] == 1

    def test_an_unreachable_collector_is_logged_once(
        self, telemetry: Recording, caplog: pytest.LogCaptureFixture
    ) -> None:
        tracing = provider(processor("127.0.0.1:1", telemetry, shutdown_timeout=0.2))
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                tracing.get_tracer("t").start_span("root").end()
                assert not tracing.force_flush(400)
            tracing.shutdown()
        absent, lost = [each.message for each in caplog.records if each.name.startswith("pandaeval")]
        assert "cannot be reached" in absent
        assert lost.startswith("traces lost, because the collector at 127.0.0.1:1 did not accept them")
        assert telemetry["traces", "dropped", "shutdown"] == 3
        assert telemetry.balance() == 0

    def test_the_buffer_is_bounded_and_dropped_traces_are_counted(self, telemetry: Recording) -> None:
        tracing = provider(processor("127.0.0.1:1", telemetry, buffer_bytes=100_000, shutdown_timeout=0.1))
        for _ in range(50):
            tracing.get_tracer("t").start_span("root", attributes={"text": "x" * 10_000}).end()
        tracing.force_flush(300)
        until(lambda: telemetry["traces", "dropped", "buffer_full"] >= 40, "more than it holds")
        assert telemetry.gauges["buffered"]() <= 100_000
        tracing.shutdown()
        assert telemetry.balance() == 0

    def test_the_newest_traces_stay_in_a_full_buffer(self, telemetry: Recording) -> None:
        buffer = Buffer(2 * Part(b"", bytes(100), 1).size, telemetry.count)
        for number in range(5):
            buffer.put(Part(bytes([number]) * 16, bytes([number]) * 100, 1))
        assert telemetry["traces", "dropped", "buffer_full"] == 3
        assert buffer.batch() == bytes([3]) * 100 + bytes([4]) * 100

    def test_a_full_queue_loses_only_whole_traces_and_all_spans_are_counted(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        made = processor(collector.endpoint, telemetry, queue_size=64)
        assert made._forwarder is not None
        tracing = provider(made)
        tracer = tracing.get_tracer("t")
        with made._forwarder.worker.submission._gate:  # the worker waits, so the queue fills
            for _ in range(300):
                with tracer.start_as_current_span("root"), tracer.start_as_current_span("child"):
                    pass
        tracing.shutdown()
        assert telemetry["spans", "dropped", "queue_full"] > 0
        assert telemetry["spans", "ended", ""] == 600
        assert telemetry.balance() == 0
        assert all(len(spans_of(sent)) == 2 for sent in collector.traces if not sent.fragment)
        assert telemetry.of("spans", "acknowledged") == sum(len(spans_of(sent)) for sent in collector.traces)

    def test_the_number_of_open_traces_is_limited(self, collector: FakeCollector, telemetry: Recording) -> None:
        made = processor(collector.endpoint, telemetry)
        tracing = provider(made)
        tracer = tracing.get_tracer("t")
        for number in range(12_000):
            tracer.start_span("never ends")
            if number % 1000 == 0:
                assert tracing.force_flush()
        assert tracing.force_flush()
        assert made._forwarder is not None
        assert len(made._forwarder.worker.collecting) <= 10_000
        tracing.shutdown()


class TestLifecycle:
    def test_the_thread_runs_only_from_the_first_span_to_shutdown(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        before = len(forwarders())
        tracing = provider(processor(collector.endpoint, telemetry))
        assert len(forwarders()) == before
        tracing.get_tracer("t").start_span("root").end()
        assert len(forwarders()) == before + 1
        tracing.shutdown()
        assert len(forwarders()) == before

    def test_providers_with_equal_settings_share_a_thread(self, collector: FakeCollector, telemetry: Recording) -> None:
        before = len(forwarders())
        providers = [provider(processor(collector.endpoint, telemetry)) for _ in range(5)]
        for each in providers:
            each.get_tracer("t").start_span("root").end()
        assert len(forwarders()) == before + 1
        providers[0].shutdown()
        providers[1].get_tracer("t").start_span("root").end()
        assert providers[1].force_flush()
        for each in providers[1:]:
            each.shutdown()
        assert len(forwarders()) == before
        assert telemetry["spans", "acknowledged", ""] == 6

    def test_the_thread_ends_when_the_provider_is_garbage_collected(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        before = len(forwarders())
        tracing = provider(processor(collector.endpoint, telemetry, shutdown_timeout=25.0))
        tracing.get_tracer("t").start_span("root").end()
        gone = weakref.ref(tracing)
        del tracing
        gc.collect()
        assert gone() is None
        until(lambda: len(forwarders()) == before, "the end of the thread")
        assert telemetry["spans", "acknowledged", ""] == 1

    def test_the_worker_keeps_no_reference_to_sent_spans(self, tracing: TracerProvider) -> None:
        span = tracing.get_tracer("t").start_span("root")
        gone = weakref.ref(span)
        span.end()
        del span
        assert tracing.force_flush()
        gc.collect()
        assert gone() is None

    def test_a_flush_after_two_shutdowns_returns_false(self, collector: FakeCollector, telemetry: Recording) -> None:
        made = processor(collector.endpoint, telemetry)
        provider(made).get_tracer("t").start_span("root").end()
        made.shutdown()
        made.shutdown()
        assert not made.force_flush(100)

    def test_flush_and_shutdown_end_at_their_timeouts(self, telemetry: Recording) -> None:
        tracing = provider(processor("127.0.0.1:1", telemetry, shutdown_timeout=0.3))
        tracing.get_tracer("t").start_span("root").end()
        assert not tracing.force_flush(300)  # no collector answers: without the timeout, the flush would not return
        tracing.shutdown()
        assert telemetry["traces", "dropped", "shutdown"] == 1

    def test_a_disabled_processor_starts_no_thread(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PANDAEVAL_ENABLED", "false")
        before = len(forwarders())
        made = PandaEvalSpanProcessor()
        provider(made).get_tracer("t").start_span("root").end()
        assert made.force_flush()
        made.shutdown()
        assert len(forwarders()) == before

    @pytest.mark.parametrize("context", [{"a": object()}, Context({"pandaeval-scope": 7})])
    def test_spans_with_invalid_contexts_are_flushed(self, tracing: TracerProvider, context: Any) -> None:
        tracing.get_tracer("t").start_span("root", context=context).end()
        assert tracing.force_flush()

    def test_failing_telemetry_loses_no_trace(self, collector: FakeCollector) -> None:
        class Failing(Recording):
            def count(self, signal: str, outcome: str, number: int, reason: str = "") -> None:
                raise RuntimeError("out of order")

        tracing = provider(processor(collector.endpoint, Failing()))
        tracing.get_tracer("t").start_span("root").end()
        assert tracing.force_flush()
        assert len(collector.traces) == 1
        tracing.shutdown()

    def test_token_and_headers_are_sent(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry, token="secret", headers={"X-Team": "a"}))
        tracing.get_tracer("t").start_span("root").end()
        tracing.shutdown()
        assert collector.metadata[0]["authorization"] == "Bearer secret"
        assert collector.metadata[0]["x-team"] == "a"

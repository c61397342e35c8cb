"""Redaction, log events and withheld content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.trace import StatusCode

from pandaeval_otel import PandaEvalLogProcessor
from pandaeval_otel.processor.settings import Settings, settings
from support.processors import FakeCollector, Recording, attributes_of, emit, logs_of, processor, provider, spans_of


@pytest.fixture
def telemetry() -> Recording:
    return Recording()


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as fake:
        yield fake


def _redact(key: str, text: str) -> str | None:
    return None if key == "secret" else text.replace("Ann", "[name]")


class TestRedaction:
    def test_every_text_of_a_span_is_redacted(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry, redact=_redact))
        with tracing.get_tracer("t").start_as_current_span("Ann's run") as span:
            span.set_attributes({"said": "I am Ann", "secret": "Ann", "list": ["Ann", "Bob"], "number": 7})
            span.add_event("told", {"by": "Ann", "secret": "x"})
            span.set_status(StatusCode.ERROR, "Ann failed")
        tracing.shutdown()
        (sent,) = spans_of(collector.traces[0])
        assert b"Ann" not in collector.traces[0].spans
        assert sent.name == "[name]'s run"
        assert set(attributes_of(sent)) == {"said", "list", "number"}
        assert attributes_of(sent.events[0]) == {"by": "[name]"}
        assert sent.status.message == "[name] failed"

    def test_a_trace_is_dropped_if_the_redactor_fails(self, collector: FakeCollector, telemetry: Recording) -> None:
        def failing(key: str, text: str) -> str:
            raise ValueError(text)

        tracing = provider(processor(collector.endpoint, telemetry, redact=failing))
        with tracing.get_tracer("t").start_as_current_span("root"):
            pass
        tracing.shutdown()
        assert not collector.traces
        assert telemetry["traces", "dropped", "redact_failed"] == 1
        assert telemetry.balance() == 0


def _logger(collector: FakeCollector, telemetry: Recording, **options: Any) -> LoggerProvider:
    made = LoggerProvider(shutdown_on_exit=False)
    log_processor = PandaEvalLogProcessor(
        collector.endpoint, telemetry=telemetry, **{"shutdown_timeout": 5.0, **options}
    )
    made.add_log_record_processor(log_processor)
    return made


class TestLogs:
    def test_events_are_sent_with_their_trace_and_log_lines_are_not(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        tracing, logs = provider(processor(collector.endpoint, telemetry)), _logger(collector, telemetry)
        with tracing.get_tracer("t").start_as_current_span("root") as span:
            emit(logs, span, {"content": "hello"}, **{"event.name": "gen_ai.user.message"})
            emit(logs, span, "an ordinary line")
        tracing.shutdown()
        logs.shutdown()
        (sent,) = collector.traces
        assert len(spans_of(sent)) == 1
        assert [attributes_of(record)["event.name"] for record in logs_of(sent)] == ["gen_ai.user.message"]
        assert telemetry["logs", "acknowledged", ""] == 1
        assert telemetry.balance("logs") == telemetry.balance() == 0

    def test_events_are_sent_as_fragments_without_a_span_processor(
        self, collector: FakeCollector, telemetry: Recording
    ) -> None:
        other = provider()
        logs = _logger(collector, telemetry)
        with other.get_tracer("t").start_as_current_span("root") as span:
            emit(logs, span, {"content": "hello"})
        assert logs.force_flush()
        logs.shutdown()
        (sent,) = collector.traces
        assert sent.fragment
        assert len(logs_of(sent)) == 1

    def test_bodies_are_redacted(self, collector: FakeCollector, telemetry: Recording) -> None:
        tracing = provider(processor(collector.endpoint, telemetry, redact=_redact))
        logs = _logger(collector, telemetry, redact=_redact)
        with tracing.get_tracer("t").start_as_current_span("root") as span:
            emit(logs, span, {"content": "I am Ann", "deep": [{"secret": "x", "said": "Ann"}]})
        tracing.shutdown()
        logs.shutdown()
        (sent,) = collector.traces
        assert b"Ann" not in sent.logs
        assert b"secret" not in sent.logs


class TestSettings:
    def test_settings_are_read_from_environment_variables(self) -> None:
        found = settings(
            {
                "PANDAEVAL_ENDPOINT": "https://there:443/",
                "PANDAEVAL_HEADERS": "a=b%20c, d=e",
                "PANDAEVAL_TOKEN": "t",
                "PANDAEVAL_COMPRESSION": "GZIP",
                "PANDAEVAL_BUFFER_BYTES": "1000",
                "PANDAEVAL_REDACTOR": "textwrap:indent",
            },
            queue_size=7,
        )
        assert (found.target, found.secure, found.gzip) == ("there:443", True, True)
        assert found.headers == (("a", "b c"), ("d", "e"), ("authorization", "Bearer t"))
        assert (found.compression, found.buffer_bytes, found.queue_size) == ("gzip", 1000, 7)
        assert found.redact is not None

    @pytest.mark.parametrize(
        ("name", "value"),
        [("PANDAEVAL_COMPRESSION", "zip"), ("PANDAEVAL_QUEUE_SIZE", "many"), ("PANDAEVAL_TIMEOUT", "-1")],
    )
    def test_invalid_environment_variables_are_ignored(self, name: str, value: str) -> None:
        assert settings({name: value}) == Settings()

    def test_an_unknown_redactor_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="PANDAEVAL_REDACTOR"):
            settings({"PANDAEVAL_REDACTOR": "nowhere:to_be_found"})

    @pytest.mark.parametrize("wrong", [{"queue_size": 0}, {"compression": "some"}, {"endpoint": "http://"}])
    def test_invalid_arguments_are_an_error(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            settings({}, **wrong)

    @pytest.mark.parametrize(
        ("endpoint", "packed"),
        [
            ("localhost:1", False),
            ("127.0.0.1:1", False),
            ("http://[::1]:1", False),
            ("unix:/tmp/x", False),
            ("a:1", True),
        ],
    )
    def test_only_requests_to_other_machines_are_compressed(self, endpoint: str, packed: bool) -> None:
        assert Settings(endpoint).gzip is packed

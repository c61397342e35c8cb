"""Names from telemetry become safe and stay distinct."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, strategies as st
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from pandaeval_collector.base.result import MAX_REASON_CHARS, MAX_TEXT_CHARS
from pandaeval_collector.base.score import Score
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_otel.base.names import MAX_NAME_CHARS, bounded, escaped
from pandaeval_otel.normal.trace import Closing, trace_of
from support.otlp_sink import attributes
from support.results import result
from tests.support.builders import Spans

MEGABYTE = "x" * (1 << 20)


class TestBounded:
    def test_an_ordinary_name_is_unchanged(self) -> None:
        for name in ("", "helper", "Übersetzer 2", "客服", "a" * MAX_NAME_CHARS):
            assert bounded(name) is name

    def test_long_names_are_cut_and_stay_distinct(self) -> None:
        one, other = bounded(f"{MEGABYTE}1"), bounded(f"{MEGABYTE}2")
        assert len(one) == len(other) == MAX_NAME_CHARS
        assert one != other
        assert one[:100] == other[:100] == MEGABYTE[:100]

    @pytest.mark.parametrize(
        ("name", "shown"),
        [("a\nb", r"a\nb"), ("a\x1b[31mb", r"a\x1b[31mb"), ("a\u202eb", r"a\u202eb"), ("a\ud800b", r"a\ud800b")],
    )
    def test_unprintable_characters_are_escaped(self, name: str, shown: str) -> None:
        assert bounded(name) == escaped(name) == shown

    @given(st.text(alphabet=st.characters(), max_size=400))
    def test_every_name_becomes_short_and_printable(self, name: str) -> None:
        found = bounded(name)
        assert len(found) <= MAX_NAME_CHARS
        assert found.isprintable()
        assert bounded(found) == found == bounded(name)
        found.encode()


def test_agent_service_and_environment_names_of_a_trace_are_bounded() -> None:
    spans = Spans()
    spans.agent(name=f"agent{MEGABYTE}", service=f"service{MEGABYTE}", environment=f"environment\n{MEGABYTE}")
    trace = trace_of(spans(), "d", Closing())
    names = (trace.agent, *trace.agents, trace.service, trace.environment or "")
    assert [len(name) for name in names] == [MAX_NAME_CHARS] * 4
    assert trace.agents == (trace.agent,)
    assert all(name.isprintable() for name in names)


def test_reason_and_metadata_of_a_result_are_bounded() -> None:
    finding = Score(0.5, f"calls {MEGABYTE}", {"cycles": [{"tools": [MEGABYTE], MEGABYTE: 1}], "calls": 3})
    made = result(finding=finding)
    decoded = orjson.loads(made.to_json())
    assert len(decoded["reason"]) <= MAX_REASON_CHARS
    assert len(decoded["metadata"]["cycles"][0]["tools"][0]) == MAX_TEXT_CHARS
    assert decoded["metadata"]["calls"] == 3
    assert len(made.to_json()) < 20_000
    event = LogRecord.FromString(log_record(encode_attributes([made])[0]))
    assert len(attributes(event.attributes)["gen_ai.evaluation.explanation"]) == 2000


def test_integers_beyond_64_bits_become_doubles_in_result_metadata() -> None:
    made = result(finding=Score(0.5, "", {"wasted_tokens": 2**63 - 1 + 2**63 - 1, "deep": [{"more": -(2**70)}]}))
    decoded = orjson.loads(made.to_json())
    assert decoded["metadata"]["wasted_tokens"] == float(2**64 - 2)
    assert decoded["metadata"]["deep"] == [{"more": float(-(2**70))}]

"""Log events and evaluation spans by contract."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pandaeval_collector.base.result import EvaluatorInfo, Result
from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters._span_summary import MAX_TEXT
from pandaeval_collector.exporters.encode import encode_attributes, log_record
from pandaeval_otel.wire.own_output import evaluation_span_id
from support.otlp_sink import attributes
from support.results import CODE, END_NS, JUDGE, SPAN_ID, TRACE_ID, result

EVENT = "gen_ai.evaluation.result"
ASKED = Score(
    0.5,
    "one of two",
    {
        "judge": {
            "model": "judge-large",
            "prompt_version": "4",
            "pack": "00ff00ff00ff00ff",
            "calls": 2,
            "tokens": {"input": 3000, "output": 90, "cached": 1024},
            "cost_usd": 0.0007,
            "cited": ["00f067aa0ba902b7"],
        },
        "truncated": ["what happened"],
        "injection_suspected": True,
    },
)
EVALUATION_ITSELF_FAILED = {Why.JUDGE_FAILED, Why.INVALID_VERDICT, Why.TIMEOUT, Why.METRIC_ERROR}


def logged(of: Result) -> tuple[LogRecord, dict[str, Any]]:
    record = LogRecord.FromString(log_record(encode_attributes([of])[0]))
    return record, attributes(record.attributes)


def emitted(*results: Result) -> list[Span]:
    return [Span.FromString(span) for span in spans(encode_attributes(results))]


class TestLogEvent:
    def test_coherence_of_a_turn_is_named_turn_coherence(self) -> None:
        assert logged(result(level="turn"))[1]["gen_ai.evaluation.name"] == "turn_coherence"

    def test_score_and_threshold_are_both_normalised(self) -> None:
        _, facts = logged(result(finding=Score(0.25, "poor", raw=2.0, scale="1-5"), threshold=3.0))
        assert facts["gen_ai.evaluation.score.value"] == 0.25
        assert facts["pandaeval.threshold"] == 0.5
        assert facts["pandaeval.passed"] is False

    def test_a_scored_result_has_all_its_fields(self) -> None:
        record, facts = logged(result())
        assert record.event_name == EVENT
        assert (record.trace_id.hex(), record.span_id.hex(), record.flags) == (TRACE_ID, SPAN_ID, 1)
        assert record.time_unix_nano == 1_772_366_400_250_000_000
        assert record.severity_number == SeverityNumber.SEVERITY_NUMBER_INFO
        assert facts == {
            "gen_ai.evaluation.name": "coherence",
            "gen_ai.evaluation.score.value": 0.75,
            "gen_ai.evaluation.score.label": "pass",
            "gen_ai.evaluation.explanation": "well said",
            "gen_ai.response.id": "resp-1",
            "gen_ai.conversation.id": "session-1",
            "gen_ai.agent.name": "helper",
            "deployment.environment.name": "test",
            "pandaeval.level": "trace",
            "pandaeval.service": "shop",
            "pandaeval.trigger": "root_ended",
            "pandaeval.late_spans": 0,
            "pandaeval.outcome": "scored",
            "pandaeval.metric.version": "2",
            "pandaeval.embedder": "embedded-1",
            "pandaeval.revision": 1,
            "pandaeval.final": True,
            "pandaeval.coverage": 1.0,
            "pandaeval.result.id": "coherence-1",
            "pandaeval.threshold": 0.5,
            "pandaeval.passed": True,
        }

    def test_log_span_and_json_contain_the_id_of_an_evaluation_run(self) -> None:
        of_run = replace(result(), run_id="0a1b")
        (span,) = emitted(of_run)
        assert logged(of_run)[1]["pandaeval.run.id"] == "0a1b"
        assert attributes(span.events[0].attributes)["pandaeval.run.id"] == "0a1b"
        assert of_run.to_dict()["run_id"] == "0a1b"
        assert "run_id" not in result().to_dict()

    def test_log_and_span_contain_the_failure_group(self) -> None:
        grouped = replace(result(), failure_group="g1")
        (span,) = emitted(grouped)
        assert logged(grouped)[1]["pandaeval.failure.group"] == "g1"
        assert attributes(span.events[0].attributes)["pandaeval.failure.group"] == "g1"
        assert "pandaeval.failure.group" not in logged(replace(result(), failure_group=""))[1]

    def test_an_integer_score_is_sent_as_a_double(self) -> None:
        _, facts = logged(result(finding=Score(1)))
        assert type(facts["gen_ai.evaluation.score.value"]) is float

    def test_an_assumed_result_has_no_score_value(self) -> None:
        _, facts = logged(result(finding=Assumed("no plan")))
        assert "gen_ai.evaluation.score.value" not in facts
        assert facts["pandaeval.assumed_value"] == 1.0
        assert facts["gen_ai.evaluation.score.label"] == "assumed"
        assert "pandaeval.coverage" not in facts

    @pytest.mark.parametrize("label", ["unclear", "disputed"])
    def test_an_undecided_verdict_has_label_and_score_but_no_passed_attribute(self, label: str) -> None:
        _, facts = logged(result("correctness", Score(0.6, label=label)))
        assert (facts["gen_ai.evaluation.score.label"], facts["gen_ai.evaluation.score.value"]) == (label, 0.6)
        assert "pandaeval.passed" not in facts

    @pytest.mark.parametrize("why", list(Why))
    def test_an_unscored_result_has_its_reason_and_warns_if_the_evaluation_failed(self, why: Why) -> None:
        record, facts = logged(result(finding=Unscored(why, "for a reason")))
        assert facts["pandaeval.why"] == why.value
        assert not facts.keys() & {"gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label", "pandaeval.passed"}
        failed = why in EVALUATION_ITSELF_FAILED
        assert facts.get("error.type") == (why.value if failed else None)
        assert (record.severity_number == SeverityNumber.SEVERITY_NUMBER_WARN) == failed

    def test_a_judged_result_names_the_judge(self) -> None:
        _, facts = logged(result("plan_quality", evaluator=JUDGE))
        assert facts["pandaeval.judge.model"] == "judge-large"
        assert "pandaeval.embedder" not in facts

    def test_a_judged_result_has_the_judges_pack_calls_tokens_cost_and_citations(self) -> None:
        _, facts = logged(result("argument_correctness", ASKED, evaluator=JUDGE))
        judge_facts = {key: value for key, value in facts.items() if key.startswith("pandaeval.judge.")}
        assert judge_facts == {
            "pandaeval.judge.model": "judge-large",
            "pandaeval.judge.prompt_version": "4",
            "pandaeval.judge.pack": "00ff00ff00ff00ff",
            "pandaeval.judge.calls": 2,
            "pandaeval.judge.input_tokens": 3000,
            "pandaeval.judge.output_tokens": 90,
            "pandaeval.judge.cached_tokens": 1024,
            "pandaeval.judge.cost_usd": 0.0007,
            "pandaeval.judge.cited": ["00f067aa0ba902b7"],
            "pandaeval.judge.truncated": ["what happened"],
            "pandaeval.judge.injection_suspected": True,
        }

    def test_missing_values_have_no_attribute(self) -> None:
        absent = {"environment": None, "session_id": None, "response_id": "", "agent": "", "threshold": None}
        _, facts = logged(result(finding=Score(0.5), **absent))
        keys = {"deployment.environment.name", "gen_ai.conversation.id", "gen_ai.response.id", "gen_ai.agent.name"}
        assert not facts.keys() & (keys | {"pandaeval.threshold", "pandaeval.passed", "gen_ai.evaluation.score.label"})

    def test_a_long_explanation_is_shortened(self) -> None:
        _, facts = logged(result(finding=Score(0.5, "x" * 5000)))
        assert facts["gen_ai.evaluation.explanation"] == "x" * (MAX_TEXT - 1) + "…"

    def test_an_unsampled_trace_has_log_events_with_flags_0(self) -> None:
        assert logged(result(sampled=False))[0].flags == 0

    def test_the_same_result_gives_the_same_bytes(self) -> None:
        assert log_record(encode_attributes([result()])[0]) == log_record(encode_attributes([result()])[0])


FACTS = {
    "gen_ai.evaluation.name": "coherence",
    "gen_ai.evaluation.score.value": 0.75,
    "gen_ai.evaluation.score.label": "pass",
    "gen_ai.evaluation.explanation": "well said",
    "gen_ai.response.id": "resp-1",
    "gen_ai.conversation.id": "session-1",
    "pandaeval.outcome": "scored",
    "pandaeval.metric.version": "2",
    "pandaeval.embedder": "embedded-1",
    "pandaeval.revision": 1,
    "pandaeval.final": True,
    "pandaeval.coverage": 1.0,
    "pandaeval.result.id": "coherence-1",
    "pandaeval.threshold": 0.5,
    "pandaeval.passed": True,
}
"""Attributes on every surface of a result."""
UNIT_FACTS = {
    "gen_ai.agent.name": "helper",
    "deployment.environment.name": "test",
    "pandaeval.level": "trace",
    "pandaeval.service": "shop",
    "pandaeval.trigger": "root_ended",
    "pandaeval.late_spans": 0,
}
SUMMARY = {
    "pandaeval.evaluated_at": "2026-03-01T12:00:00.250000+00:00",
    "pandaeval.score.coherence": 0.75,
    "pandaeval.verdict": "pass",
    "pandaeval.reason": "well said",
    "pandaeval.session.id": "session-1",
}
AT_PAGE = {"pandaeval.url": f"https://page/#/trace/{TRACE_ID}?span={SPAN_ID}"}
LEVEL_SESSION = {"pandaeval.level": "session"}


def bare(message: Any) -> Any:
    """Return the message without attributes and events."""
    kept = type(message).FromString(message.SerializeToString())
    kept.ClearField("attributes")
    if isinstance(kept, Span):
        kept.ClearField("events")
    return kept


class TestWholeMessages:
    """Full messages, read by protobuf."""

    def record(self, of: Result, page: str = "https://page") -> LogRecord:
        return LogRecord.FromString(log_record(encode_attributes([of], page)[0]))

    def span(self, of: Result, page: str = "https://page") -> Span:
        [encoded] = spans(encode_attributes([of], page))
        return Span.FromString(encoded)

    def test_a_log_record_of_a_scored_result(self) -> None:
        record = self.record(result())
        at = 1_772_366_400_250_000_000
        assert bare(record) == LogRecord(
            time_unix_nano=at,
            observed_time_unix_nano=at,
            severity_number=SeverityNumber.SEVERITY_NUMBER_INFO,
            severity_text="INFO",
            event_name=EVENT,
            trace_id=bytes.fromhex(TRACE_ID),
            span_id=bytes.fromhex(SPAN_ID),
            flags=1,
        )
        assert attributes(record.attributes) == FACTS | UNIT_FACTS | AT_PAGE
        assert len(record.attributes) == len(FACTS | UNIT_FACTS | AT_PAGE), "no attribute is repeated"

    def test_a_log_record_of_an_evaluation_that_failed(self) -> None:
        record = self.record(result(finding=Unscored(Why.TIMEOUT, "late", coverage=0.5), sampled=False))
        assert (record.severity_number, record.severity_text) == (SeverityNumber.SEVERITY_NUMBER_WARN, "WARN")
        assert record.flags == 0
        score_keys = {key for key in FACTS if key.startswith("gen_ai.evaluation.score")} | {"pandaeval.passed"}
        assert attributes(record.attributes) == {
            **{key: value for key, value in FACTS.items() if key not in score_keys},
            **UNIT_FACTS,
            **AT_PAGE,
            "gen_ai.evaluation.explanation": "late",
            "error.type": "timeout",
            "pandaeval.outcome": "unscored",
            "pandaeval.why": "timeout",
            "pandaeval.coverage": 0.5,
        }

    def test_a_span_of_results_without_a_model(self) -> None:
        span = self.span(result())
        own_id = evaluation_span_id(["coherence-1"])
        assert bare(span) == Span(
            trace_id=bytes.fromhex(TRACE_ID),
            span_id=own_id,
            parent_span_id=bytes.fromhex(SPAN_ID),
            flags=0x301,
            name="✓ evaluate",
            kind=Span.SpanKind.SPAN_KIND_INTERNAL,
            start_time_unix_nano=END_NS,
            end_time_unix_nano=END_NS + 1_000_000,
        )
        expected = UNIT_FACTS | SUMMARY | AT_PAGE | {"pandaeval.score.min": 0.75, "pandaeval.failed": []}
        assert attributes(span.attributes) == expected
        assert len(span.attributes) == len(expected)
        [event] = span.events
        assert (event.name, event.time_unix_nano) == (EVENT, END_NS + 1_000_000)
        assert attributes(event.attributes) == FACTS | UNIT_FACTS
        assert len(event.attributes) == len(FACTS | UNIT_FACTS)

    def test_a_span_of_a_judged_result(self) -> None:
        span = self.span(result(evaluator=JUDGE))
        own_id = evaluation_span_id(["coherence-1"])
        assert bare(span) == Span(
            trace_id=bytes.fromhex(TRACE_ID),
            span_id=own_id,
            parent_span_id=bytes.fromhex(SPAN_ID),
            flags=0x301,
            name="✓ evaluate judged",
            kind=Span.SpanKind.SPAN_KIND_INTERNAL,
            start_time_unix_nano=END_NS,
            end_time_unix_nano=END_NS + 1_000_000,
        )
        by = {"pandaeval.judge.model": "judge-large", "pandaeval.metric.version": "3"}
        facts = {key: value for key, value in FACTS.items() if key != "pandaeval.embedder"} | UNIT_FACTS | by
        expected = UNIT_FACTS | SUMMARY | AT_PAGE | {"pandaeval.score.min": 0.75, "pandaeval.failed": []}
        assert attributes(span.attributes) == expected
        assert len(span.attributes) == len(expected)
        assert attributes(span.events[0].attributes) == facts

    def test_all_evaluation_spans_of_a_session_are_in_one_trace(self) -> None:
        by_code, by_judge = result(level="session"), result("goal_completion", level="session", evaluator=JUDGE)
        sent = emitted(by_code, by_judge)
        assert len(sent) == 2
        assert len({span.trace_id for span in sent}) == 1
        other = self.span(replace(by_code, unit=replace(by_code.unit, id="another session")))
        assert other.trace_id != sent[0].trace_id

    def test_a_span_of_a_session(self) -> None:
        span = self.span(result(level="session", trace_ids=(f"{TRACE_ID}:{SPAN_ID}",)))
        assert bare(span) == Span(
            trace_id=span.trace_id,
            span_id=evaluation_span_id(["coherence-1"]),
            flags=0x101,
            name="✓ session helper",
            kind=Span.SpanKind.SPAN_KIND_INTERNAL,
            start_time_unix_nano=END_NS,
            end_time_unix_nano=END_NS + 1_000_000,
            links=[Span.Link(trace_id=bytes.fromhex(TRACE_ID), span_id=bytes.fromhex(SPAN_ID), flags=1)],
        )
        at_page = {"pandaeval.url": "https://page/#/session/session-1"}
        rest = {"pandaeval.score.min": 0.75, "pandaeval.failed": []}
        assert attributes(span.attributes) == UNIT_FACTS | LEVEL_SESSION | SUMMARY | at_page | rest
        assert attributes(span.events[0].attributes) == FACTS | UNIT_FACTS | LEVEL_SESSION

    def test_integer_thresholds_costs_and_coverages_are_sent_as_doubles(self) -> None:
        judge = {**ASKED.metadata["judge"], "cost_usd": 1}
        of = result(finding=Score(1, coverage=1, metadata={"judge": judge}), evaluator=JUDGE, threshold=1)
        doubles = {"pandaeval.threshold", "pandaeval.coverage", "pandaeval.judge.cost_usd"}
        for found in (self.record(of), self.span(of).events[0]):
            facts = attributes(found.attributes)
            assert {key: type(facts[key]) for key in doubles} == dict.fromkeys(doubles, float)
        assumed = attributes(self.record(result(finding=Assumed("nothing", value=1))).attributes)
        assert type(assumed["pandaeval.assumed_value"]) is float

    @pytest.mark.parametrize("evaluator", [CODE, EvaluatorInfo("math", "1", "a model")])
    def test_models_of_other_evaluator_kinds_are_not_sent(self, evaluator: EvaluatorInfo) -> None:
        keys = attributes(self.record(result(evaluator=evaluator)).attributes).keys()
        assert not keys & {"pandaeval.judge.model", "pandaeval.embedder"}


class TestGroups:
    """Grouping and order of spans."""

    def ids(self, *results: Result) -> list[list[str]]:
        found = [[attributes(event.attributes)["pandaeval.result.id"] for event in s.events] for s in emitted(*results)]
        assert [s.span_id for s in emitted(*results)] == [evaluation_span_id(ids) for ids in found]
        return found

    def test_each_trace_has_one_span_and_a_later_span_for_judged_results(self) -> None:
        results = [
            result("a"),
            result("b", evaluator=JUDGE),
            result("c"),
            result("d", evaluator=JUDGE),
            result("e", trace_id="ab" * 16),
        ]
        assert self.ids(*results) == [["a-1", "c-1"], ["e-1"], ["b-1", "d-1"]]

    def test_results_of_different_levels_have_separate_spans(self) -> None:
        assert self.ids(result("a"), result("b", level="task"), result("c", level="task")) == [["a-1"], ["b-1", "c-1"]]

    def test_unsampled_results_have_no_span(self) -> None:
        results = [result("a", sampled=False), result("b"), result("c", evaluator=JUDGE, sampled=False)]
        assert self.ids(*results) == [["b-1"]]

    def test_no_results_give_no_spans(self) -> None:
        assert emitted() == []


class TestSpans:
    def test_results_without_a_model_share_a_span(self) -> None:
        loops = result("tool_loop", Score(0.25, failed=True, label="loop"), evaluator=CODE)
        [span] = emitted(result(), loops)
        assert span.name == "✗ tool_loop"
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, SPAN_ID)
        assert (span.start_time_unix_nano, span.end_time_unix_nano) == (END_NS, END_NS + 1_000_000)
        assert span.kind == Span.SpanKind.SPAN_KIND_INTERNAL
        assert span.flags == 0x1 | 0x100 | 0x200, "sampled, with a remote parent"
        facts = attributes(span.attributes)
        assert facts["pandaeval.score.min"] == 0.25
        assert facts["pandaeval.failed"] == ["tool_loop"]
        assert facts["pandaeval.evaluated_at"] == "2026-03-01T12:00:00.250000+00:00"
        assert "gen_ai.tool.name" not in facts, "Jaeger would show a tool call"
        assert [event.name for event in span.events] == [EVENT, EVENT]

    def test_span_events_have_the_attributes_of_the_log_event(self) -> None:
        [span] = emitted(result())
        assert attributes(span.events[0].attributes) == logged(result())[1]

    def test_judged_results_of_a_trace_and_its_turns_share_a_second_span(self) -> None:
        judged = [result(name, evaluator=JUDGE) for name in ("plan_quality", "confidence")]
        turns = [
            result("relevance", Score(value), evaluator=JUDGE, level="turn", id=f"t{value}") for value in (0.9, 0.6)
        ]
        inline, own = emitted(result(), *turns, *judged)
        assert (inline.name, own.name) == ("✓ evaluate", "✓ evaluate judged")
        assert own.parent_span_id == inline.parent_span_id
        names = [attributes(event.attributes)["gen_ai.evaluation.name"] for event in own.events]
        assert names == ["plan_quality", "confidence", "relevance", "relevance"]
        assert attributes(own.events[0].attributes) == logged(judged[0])[1]
        facts = attributes(own.attributes)
        assert {key: facts[key] for key in facts if key.startswith("pandaeval.score.")} == {
            "pandaeval.score.plan_quality": 0.75,
            "pandaeval.score.confidence": 0.75,
            "pandaeval.score.relevance": 0.6,
            "pandaeval.score.min": 0.6,
        }
        assert facts["pandaeval.verdict"] == "pass"

    @pytest.mark.parametrize("of", [result(), result("confidence", evaluator=JUDGE)], ids=["inline", "judged"])
    def test_a_span_of_an_undecided_trace_has_no_pass_verdict(self, of: Result) -> None:
        verdicts = [
            attributes(Span.FromString(each).attributes).get("pandaeval.verdict")
            for undecided in ((), (TRACE_ID,))
            for each in spans(encode_attributes([of]), undecided=undecided)
        ]
        assert verdicts == ["pass", None]

    def test_a_span_of_late_judged_results_is_named_by_its_metrics(self) -> None:
        late = encode_attributes([result("confidence", evaluator=JUDGE)])
        [span] = [Span.FromString(each) for each in spans(late, judged={TRACE_ID})]
        assert span.name == "✓ evaluate confidence"
        assert "pandaeval.verdict" not in attributes(span.attributes)

    def test_assumed_results_without_a_judge_call_are_in_the_span_of_code_results(self) -> None:
        [span] = emitted(result(), result("plan_quality", Assumed("no plan"), evaluator=JUDGE))
        assert (span.name, len(span.events)) == ("✓ evaluate", 2)

    def test_an_assumed_result_does_not_make_a_judged_span_pass(self) -> None:
        assumed = result("plan_quality", Assumed("no plan", {"judge": ASKED.metadata["judge"]}), evaluator=JUDGE)
        [span] = emitted(assumed)
        assert (span.name, len(span.events)) == ("evaluate judged", 1)
        failing = emitted(assumed, result("confidence", Score(0.1), evaluator=JUDGE))[0]
        assert failing.name == "✗ confidence"
        assert attributes(failing.attributes)["pandaeval.verdict"] == "fail"

    def test_a_judged_span_links_to_the_spans_that_the_judge_cited(self) -> None:
        judged = result("argument_correctness", ASKED, evaluator=JUDGE)
        inline, own = emitted(result(), judged)
        assert [(link.trace_id.hex(), link.span_id.hex()) for link in own.links] == [(TRACE_ID, "00f067aa0ba902b7")]
        assert not inline.links
        facts = attributes(own.events[0].attributes)
        assert facts["pandaeval.judge.pack"] == "00ff00ff00ff00ff"

    def test_other_metadata_named_judge_is_not_read_as_judge_data(self) -> None:
        for own in ("me", {"name": "me"}, None):
            of = result("custom", Score(0.5, metadata={"judge": own}), evaluator=JUDGE)
            assert "pandaeval.judge.pack" not in logged(of)[1]
            assert not emitted(of)[0].links

    def test_each_trace_of_a_batch_has_its_own_span(self) -> None:
        other = result(id="other", trace_id="ab" * 16)
        assert [span.trace_id.hex() for span in emitted(result(), result("tool_loop"), other)] == [TRACE_ID, "ab" * 16]

    def test_a_span_without_scores_has_no_lowest_score(self) -> None:
        [span] = emitted(result(finding=Unscored(Why.NO_CONTENT)))
        facts = attributes(span.attributes)
        assert "pandaeval.score.min" not in facts
        assert facts["pandaeval.failed"] == []

    def test_a_session_has_a_trace_of_its_own_with_links(self) -> None:
        traces = tuple(f"{number:032x}:{number:016x}" for number in (1, 2))
        [span] = emitted(result("agent_reliability", level="session", trace_ids=traces))
        assert span.name == "✓ session helper"
        assert not span.parent_span_id
        assert span.trace_id.hex() != TRACE_ID
        assert [(link.trace_id.hex(), link.span_id.hex(), link.flags) for link in span.links] == [
            (f"{1:032x}", f"{1:016x}", 1),
            (f"{2:032x}", f"{2:016x}", 1),
        ]
        record, _ = logged(result("agent_reliability", level="session", trace_ids=traces))
        assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE_ID, SPAN_ID), "the last trace's root"

    def test_span_ids_depend_on_the_result_ids(self) -> None:
        [first], [again], [other] = emitted(result()), emitted(result()), emitted(result(id="coherence-2"))
        assert first.span_id == again.span_id != other.span_id
        assert len(first.span_id) == 8

    def test_an_unsampled_trace_has_no_evaluation_spans(self) -> None:
        assert emitted(result(sampled=False), result("plan_quality", evaluator=JUDGE, sampled=False)) == []

    def test_true_and_1_keep_their_types(self) -> None:
        """True equals 1 as a cache key."""
        _, facts = logged(result(final=True, revision=1))
        assert (facts["pandaeval.final"], type(facts["pandaeval.final"])) == (True, bool)
        assert (facts["pandaeval.revision"], type(facts["pandaeval.revision"])) == (1, int)

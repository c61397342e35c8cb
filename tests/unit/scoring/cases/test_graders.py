"""Each grader on handmade trials."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from pandaeval_collector.analysis.stats.tools import tool_band
from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.result import Result
from pandaeval_collector.base.score import Score, Unscored, Why
from pandaeval_collector.judge.client import AnswerCost
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_lab.cases import Case, Suite, Trial, read_suite
from pandaeval_lab.cases.graders import suite_warnings
from pandaeval_lab.cases.grading import TrialGrader, TrialVerdict
from pandaeval_lab.cases.trial import RUN_SCOPE, function, source_of
from pandaeval_lab.report.layers import LayerReport
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, ToolDefinition, Trace, Trigger, Turn


class Embedder:
    id, bands = "none", None

    def embed(self, texts: Sequence[str]) -> Any:
        return np.zeros((len(texts), 2), dtype=np.float32)


EVALUATOR = Evaluator(Embedder())
A, B = {"tool_name": "a", "parameters": {"x": 1, "y": "k"}}, {"tool_name": "b", "parameters": {}}


def call(name: str, arguments: Any = None, result: Any = "ok", error: str | None = None) -> ToolCall:
    return ToolCall(name, arguments=arguments or {}, result=result, error=error, has_arguments=True, has_result=True)


def trace(*calls: ToolCall, number: int = 1, said: str = "", **fields: Any) -> Trace:
    at = number * 1000
    output = (Message("assistant", (Text(said),)),) if said else ()
    spans = (
        Span(f"{number:032x}", "1" * 16, "", "run", Kind.AGENT, at, at + 9, attributes=fields.pop("attributes", {})),
        Span(f"{number:032x}", "2" * 16, "1" * 16, "chat", Kind.LLM, at, at + 1, output=output),
    )
    fields = {"input": "go", "output": "done", "digest": f"d{number}", **fields}
    return Trace(f"{number:032x}", spans, "1" * 16, tool_calls=calls, **fields)


def results(case: dict[str, Any], *traces: Trace, **verdicts: Any) -> dict[str, Result]:
    made = Case.model_validate({"id": "c", **case})
    grader = TrialGrader(EVALUATOR, Suite(cases=(made,)))
    given = {name: TrialVerdict(finding, AnswerCost(model="m")) for name, finding in verdicts.items()}
    return {each.metric: each for each in grader.results(Trial(made, "1", traces), given)}


def score(case: dict[str, Any], metric: str, *traces: Trace, **verdicts: Any) -> float | str | None:
    found = results(case, *traces, **verdicts).get(metric)
    return None if found is None else found.score if found.why is None else found.why


class TestToolCorrectness:
    @pytest.mark.parametrize(
        ("calls", "expected"),
        [
            ([call("a", {"x": 1, "y": "k"}), call("b")], 1.0),
            ([call("a", {"x": 1.0, "y": "k"}), call("b")], 1.0),
            ([call("a", {"x": True, "y": "k"}), call("b")], 0.25 * (1 + 0.75 + 1 + 1)),
            ([call("b"), call("a", {"x": 1, "y": "k"})], 0.25 * (1 + 1 + 0.5 + 1)),
            ([call("a", {"x": 1, "z": 2})], 0.25 * (2 / 3 + (1 / 3) / 2 + 0.5 + 1)),
            ([call("a", {"x": 1, "y": "k"}), call("b"), call("c")], 0.25 * (0.8 + 2 / 3 + 2 / 3 + 1)),
            ([], 0.0),
        ],
    )
    def test_is_the_mean_of_four_parts(self, calls: list[ToolCall], expected: float) -> None:
        assert score({"expected_tools": [A, B]}, "tool_correctness", trace(*calls)) == pytest.approx(expected, abs=1e-9)

    def test_has_no_result_and_trial_is_correct_if_no_call_is_expected_or_made(self) -> None:
        found = results({"expected_tools": []}, trace())
        assert "tool_correctness" not in found
        assert found["trial_correct"].score == 1.0

    def test_trial_is_wrong_if_a_call_is_made_but_none_is_expected(self) -> None:
        found = results({"expected_tools": []}, trace(call("a")))
        assert found["tool_correctness"].score == 0.25
        assert found["trial_correct"].score == 0.0

    def test_order_is_ignored_if_configured_and_within_a_step(self) -> None:
        turned = trace(call("b"), call("a", {"x": 1, "y": "k"}))
        assert score({"expected_tools": [A, B], "tool_sequence_matters": False}, "tool_correctness", turned) == 1.0
        steps = [{**A, "step": 1}, {**B, "step": 1}, {"tool_name": "c", "step": 2}]
        assert score({"expected_tools": steps}, "tool_correctness", trace(*turned.tool_calls, call("c"))) == 1.0
        assert score({"expected_tools": steps}, "tool_correctness", trace(call("c"), *turned.tool_calls)) < 1.0

    @pytest.mark.parametrize(
        ("calls", "right"),
        [
            ([], True),
            ([call("b")], True),
            ([call("b"), call("a", {"x": 1, "y": "k"}), call("b")], True),
            ([call("b"), call("c")], False),
            ([call("a", {"x": 2, "y": "k"})], False),
            ([call("c")], False),
        ],
    )
    def test_tool_match_within_permits_only_the_expected_calls(self, calls: list[ToolCall], right: bool) -> None:
        case = {"expected_tools": [A, B], "tool_match": "within"}
        found = results(case, trace(*calls))
        assert found["trial_correct"].score == float(right)
        assert right == all(each.success is not False for each in found.values())
        talk = {"interactions": [{"expected_tools": [A, B]}], "tool_match": "within"}
        assert score(talk, "trial_correct", trace(*calls)) == float(right)

    def test_wrong_order_breaks_no_layer_if_order_is_ignored(self) -> None:
        turned = trace(call("c"), call("b"), call("a", {"x": 1, "y": "k"}))
        wanted = [A, B, {"tool_name": "c"}]
        made = Case.model_validate({"id": "c", "expected_tools": wanted})
        for free, state in ((made.model_copy(update={"tool_sequence_matters": False}), "pass"), (made, "fail")):
            report = LayerReport()
            TrialGrader(EVALUATOR, Suite(cases=(free,)), report.add).results(Trial(free, "1", (turned,)))
            (row,) = report.brief()
            assert row["layers"][1] == state

    def test_weights_and_threshold_of_the_case_are_used(self) -> None:
        weights = {"selection": 1, "parameters": 0, "sequence": 0, "utilization": 0}
        case = {"expected_tools": [A, B], "tool_weights": weights, "thresholds": {"tool_correctness": 0.6}}
        found = results(case, trace(call("a")))
        assert found["tool_correctness"].score == pytest.approx(2 / 3)
        assert found["tool_correctness"].success is True
        assert found["trial_correct"].score == 1.0

    def test_use_of_results_is_judged_stated_or_unknown(self) -> None:
        case, run = {"expected_tools": [B], "results_must_be_used": True}, trace(call("b"))
        assert score(case, "tool_correctness", run) == "insufficient_evidence"
        assert score({**case, "results_used": True}, "tool_correctness", run) == 1.0
        judged = score(case, "tool_correctness", run, result_utilization=Score(0.4))
        assert judged == pytest.approx(0.25 * 3.4)
        # wrong calls are scored without a judge
        assert score(case, "tool_correctness", trace(call("b"), call("c"))) == pytest.approx(0.25 * (2 / 3 + 0.5 + 0.5))

    def test_calls_are_matched_for_the_best_total_score(self) -> None:
        expected = [{"tool_name": "a", "parameters": {"x": x, "y": 0}} for x in (1, 2)]
        calls = trace(call("a", {"x": 2, "y": 0}), call("a", {"x": 1, "y": 9}))
        found = results({"expected_tools": expected}, calls)["tool_correctness"]
        assert found.finding.metadata["parameters"] == pytest.approx((1 + 0.5) / 2)


class TestArguments:
    @pytest.mark.parametrize(
        ("expected", "given", "right"),
        [
            ({"parameters": {"x": 1}, "acceptable": {"x": [2]}}, {"x": 2}, True),
            ({"parameters": {"x": 1}}, {"x": "1"}, False),
            ({"parameters": {"x": 1}, "compare_args": {"x": "number"}}, {"x": "1.0", "other": 3}, True),
            ({"parameters": {"x": "San José, CA"}, "compare_args": {"x": "text"}}, {"x": "san josé ca"}, True),
            ({"parameters": {"x": [1, 2]}, "compare_args": {"x": "unordered"}}, {"x": [2, 1]}, True),
            ({"parameters": {"x": [1, 2]}}, {"x": [2, 1]}, False),
            ({"parameters": {"x": 1}, "compare_args": {"x": "any"}}, {"x": 5}, True),
            ({"parameters": {"x": 1}, "compare_args": {"x": "any"}}, {}, False),
            ({"parameters": {"x": 1, "y": 2}, "compare_args": ["x"]}, {"x": 1, "y": 9, "z": 0}, True),
            ({"parameters": {"x": 1, "y": 2}, "compare_args": []}, {"q": 1}, True),
            ({"parameters": {"x": 1, "y": 2}, "optional": ["y"]}, {"x": 1}, True),
            ({"parameters": {"x": {"y": [1]}}}, {"x": {"y": [1]}}, True),
            ({}, {"whatever": 1}, True),
        ],
    )
    def test_are_compared_as_the_case_configures(self, expected: dict[str, Any], given: Any, right: bool) -> None:
        found = score({"expected_tools": [{"tool_name": "a", **expected}]}, "tool_correctness", trace(call("a", given)))
        assert (found == 1.0) is right

    def test_call_that_violates_its_schema_scores_zero(self) -> None:
        schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x", "y"]}
        case = {"expected_tools": [A], "tool_schemas": {"a": schema}}
        right = results(case, trace(call("a", {"x": 1, "y": "other"})))["parameter_correctness"]
        assert right.score == 0.5
        assert right.finding.metadata["schema_valid"] is True
        wrong = results(case, trace(call("a", {"x": "1", "y": "k"})))["parameter_correctness"]
        assert wrong.score == 0.0
        assert wrong.finding.metadata["schema_errors"] == ["a: $.x: '1' is not of type 'integer'"]
        assert wrong.finding.metadata["semantic_score"] == 0.5

    def test_catastrophic_pattern_in_a_schema_of_the_trace_is_checked(self) -> None:
        endless = {"type": "string", "pattern": "^(a+)+$"}
        tools = (ToolDefinition("a", parameters={"type": "object", "properties": {"x": endless}}),)
        case = {"expected_tools": [{"tool_name": "a"}]}
        assert score(case, "parameter_correctness", trace(call("a", {"x": "a" * 60}), tools=tools)) == 1.0
        assert score(case, "parameter_correctness", trace(call("a", {"x": "a" * 60 + "!"}), tools=tools)) == 0.0

    def test_parameter_correctness_is_unscored_if_a_declared_pattern_is_unsupported(self) -> None:
        tools = (ToolDefinition("a", parameters={"properties": {"x": {"pattern": "^(?=a)a$"}}}),)
        case = {"expected_tools": [{"tool_name": "a"}]}
        assert score(case, "parameter_correctness", trace(call("a", {"x": 1}), tools=tools)) == "insufficient_evidence"

    def test_parameter_correctness_is_unscored_without_schema_and_expected_parameters(self) -> None:
        case = {"expected_tools": [{"tool_name": "a"}]}
        assert score(case, "parameter_correctness", trace(call("a"))) == "insufficient_evidence"
        assert score({"expected_tools": []}, "parameter_correctness", trace()) == 1.0  # assumed

    def test_the_reason_names_the_arguments_that_differ(self) -> None:
        wanted = {"tool_name": "book", "parameters": {"city": "Paris", "day": 3, "seat": "A1"}}
        case = {"expected_tools": [wanted]}
        made = trace(call("book", {"city": "Rome", "day": 3, "bed": True}))
        said = "bed was not expected, city: 'Rome' instead of 'Paris', seat is missing"
        found = results(case, made)
        assert found["tool_correctness"].finding.reason == f"book({said})"
        assert found["trial_correct"].finding.reason == f"tool_correctness: book({said})"
        assert found["parameter_correctness"].finding.reason.startswith(f"book ({said.replace(', ', '; ')});")


class TestPlans:
    def test_are_read_from_a_list_before_the_first_call(self) -> None:
        said = "Plan:\n1. look it up with search\n2. then send_mail to them\n- done"
        run = trace(call("search"), call("search"), said=said, tools=(ToolDefinition("send_mail"),))
        found = results({"expected_tools": [{"tool_name": "search"}, {"tool_name": "send_mail"}]}, run)
        assert found["plan_adherence"].score == 0.5
        assert found["plan_adherence"].finding.metadata["plan"] == ["search", "send_mail"]
        assert found["plan_quality"].score == 1.0
        assert found["plan_quality"].finding.metadata["basis"] == "plan"

    def test_are_read_from_the_plan_attribute(self) -> None:
        run = trace(call("a"), attributes={"pandaeval.plan": '[{"tool": "a"}, "b"]'})
        assert score({}, "plan_adherence", run) == 0.5

    def test_plan_adherence_has_no_result_without_a_plan(self) -> None:
        assert score({}, "plan_adherence", trace(call("a"), said="I use a")) is None


class TestOutcomes:
    def test_end_states_are_compared_field_by_field(self) -> None:
        case = {"expected_outcome": {"status": "sent", "end_state": {"lines": {"n": 1}, "open": False}}}
        state = '{"status": "sent", "lines": {"n": 1.0, "more": 2}, "open": false}'
        assert score(case, "end_state", trace(attributes={"pandaeval.end_state": state})) == 1.0
        other = state.replace("false", "0")
        assert score(case, "end_state", trace(attributes={"pandaeval.end_state": other})) == 0.0
        assert score(case, "end_state", trace()) == "no_content"
        assert score(case, "trial_correct", trace()) == "insufficient_evidence"

    def test_exit_code_is_read_from_an_attribute_or_a_tool_result(self) -> None:
        assert score({"exit_code": 0}, "exit_code", trace(attributes={"pandaeval.exit_code": 0})) == 1.0
        assert score({"exit_code": 0}, "exit_code", trace(call("sh", result={"exit_code": 2}))) == 0.0
        assert score({"exit_code": 0}, "exit_code", trace(call("sh"))) == "no_content"

    @pytest.mark.parametrize(
        ("wanted", "answer", "right"),
        [
            ("json", '{"a": 1}', True),
            ("json", '```json\n{"a": 1}\n```', True),
            ("json", "a: 1", False),
            ({"json_schema": {"type": "object", "required": ["b"]}}, '{"a": 1}', False),
            ({"pattern": "^Total: \\d+$"}, "Total: 12", True),
            ({"contains": ["23553"]}, "It is 23,553 points.", True),
            ({"contains": ["yes"], "excludes": ["sorry"]}, "Yes, sorry", False),
        ],
    )
    def test_answer_is_checked_against_the_output_format(self, wanted: Any, answer: str, right: bool) -> None:
        assert score({"output_format": wanted}, "output_format", trace(output=answer)) == float(right)

    @pytest.mark.parametrize(
        ("calls", "right"),
        [(["ask", "x", "send"], True), (["send", "ask", "send"], False), (["ask"], False), ([], False)],
    )
    def test_required_order_compares_the_first_calls_of_the_tools(self, calls: list[str], right: bool) -> None:
        made = trace(*(call(name) for name in calls))
        assert score({"required_order": ["ask", "send"]}, "required_order", made) == float(right)

    def test_failed_call_of_a_forbidden_tool_counts(self) -> None:
        case = {"forbidden_tools": ["delete_*", "pay"], "counted_calls": {"failed": False}}
        assert score(case, "forbidden_tools", trace(call("delete_all", error="denied"))) == 0.0
        assert score(case, "forbidden_tools", trace(call("undelete"))) == 1.0

    def test_step_efficiency_is_minimum_steps_divided_by_calls(self) -> None:
        assert score({"minimum_steps": 2}, "step_efficiency_ratio", trace(*[call("a")] * 5)) == 0.4
        assert score({"minimum_steps": 2}, "step_efficiency_ratio", trace()) == "insufficient_evidence"
        assert score({"minimum_steps": 2}, "step_efficiency_ratio", trace(call("a"))) == 1.0

    def test_only_counted_calls_are_graded(self) -> None:
        counted = {"tools": "changing", "failed": False}
        case = {"expected_tools": [{"tool_name": "update_order"}, {"tool_name": "get_order"}], "counted_calls": counted}
        made = [call("get_order"), call("update_order", error="x"), call("update_order")]
        assert score(case, "tool_correctness", trace(*made)) == 1.0
        assert score(case, "tool_correctness", trace(*made, call("delete_order"))) < 1.0


class TestUntrustedEndState:
    @pytest.mark.parametrize("actual", ["[" * 900 + "]" * 900, json.dumps("x" * 1_000_000)])
    def test_deep_or_long_value_fails_with_a_short_reason(self, actual: str) -> None:
        stated = {"pandaeval.end_state": f'{{"status": {actual}}}'}
        found = results({"expected_outcome": {"status": "sent"}}, trace(attributes=stated))
        assert found["end_state"].success is False
        assert len(found["end_state"].finding.reason) < 1000
        assert len(found["end_state"].to_json()) < 10_000
        assert found["trial_correct"].success is False


class TestConversations:
    CASE: ClassVar[dict[str, Any]] = {
        "interactions": [
            {"expected_answer": "Hello", "expected_tools": []},
            {"expected_tools": [{"tool_name": "a"}]},
        ]
    }

    def test_are_correct_if_all_interactions_are(self) -> None:
        traces = trace(), trace(call("a"), number=2)
        found = results(self.CASE, *traces, answer_correctness=Score(0.8, metadata={"answers": [0.8]}))
        assert found["conversation_correctness"].score == 1.0
        told = found["conversation_correctness"].finding.metadata
        assert (told["total_interactions"], told["correct_interactions"]) == (2, 2)
        assert told["tool_correctness_scores"] == [None, 1.0]

    def test_are_wrong_if_one_interaction_is_wrong_or_missing(self) -> None:
        traces = trace(), trace(call("a"), number=2)
        low = Score(0.6, metadata={"answers": [0.6]})
        assert score(self.CASE, "conversation_correctness", *traces, answer_correctness=low) == 0.0
        assert score(self.CASE, "conversation_correctness", trace(), trace(call("b"), number=2)) == 0.0
        assert score(self.CASE, "conversation_correctness", trace()) == 0.0  # the second interaction did not take place

    def test_are_undecided_if_no_judge_compared_the_expected_answer(self) -> None:
        assert score(self.CASE, "conversation_correctness", trace(), trace(call("a"), number=2)) == (
            "insufficient_evidence"
        )

    def test_are_undecided_if_arguments_were_not_captured(self) -> None:
        case = {"interactions": [{"expected_tools": [A]}]}
        found = results(case, trace(ToolCall("a")))
        assert found["conversation_correctness"].why == Why.INSUFFICIENT_EVIDENCE
        assert "arguments" in found["conversation_correctness"].finding.reason
        assert found["trial_correct"].success is None
        assert score(case, "conversation_correctness", trace(ToolCall("b"))) == 0.0  # wrong even without arguments

    def test_required_use_of_results_decides_conversations(self) -> None:
        case = {"interactions": [{"expected_tools": [A]}], "results_must_be_used": True}
        made = trace(call("a", A["parameters"]))
        assert score(case, "conversation_correctness", made) == "insufficient_evidence"
        assert score({**case, "results_used": True}, "conversation_correctness", made) == 1.0
        for used, expected in ((1.0, 1.0), (0.5, 0.0)):
            assert score(case, "conversation_correctness", made, result_utilization=Score(used)) == expected

    def test_turns_of_one_trace_are_interactions(self) -> None:
        spans = tuple(Span("1" * 32, f"{at:016x}", "", "chat", Kind.LLM, at * 100, at * 100 + 9) for at in (1, 2))
        turns = Turn("hi", "Hello", f"{1:016x}"), Turn("do", "done", f"{2:016x}")
        made = ToolCall("a", has_arguments=True, arguments={}, start_ns=150, end_ns=160)
        whole = Trace("1" * 32, spans, f"{1:016x}", turns=turns, tool_calls=(made,), output="done", digest="d")
        good = Score(1.0, metadata={"answers": [1.0]})
        assert score(self.CASE, "conversation_correctness", whole, answer_correctness=good) == 1.0


class TestToolsOfConversations:
    ONCE: ClassVar[dict[str, Any]] = {"expected_tools": [{"tool_name": "a", "parameters": {"x": 1}}]}
    CASE: ClassVar[dict[str, Any]] = {"interactions": [ONCE, {"expected_tools": []}, ONCE]}
    RIGHT = call("a", {"x": 1})

    @pytest.mark.parametrize(
        ("third", "value", "reason"),
        [
            (RIGHT, 1.0, "the calls of 2 interactions are as expected"),
            (call("b", {"x": 1}), 0.625, "interaction 3: expected a; called b"),
            (call("a", {"x": 2}), 0.875, "interaction 3: a(x: 2 instead of 1)"),
        ],
    )
    def test_are_compared_within_each_interaction(self, third: ToolCall, value: float, reason: str) -> None:
        found = results(self.CASE, trace(self.RIGHT), trace(number=2), trace(third, number=3))["tool_correctness"]
        assert (found.score, found.finding.reason) == (value, reason)
        assert found.success is (third is self.RIGHT)
        assert found.to_dict()["metadata"]["interactions"]["1"] == 1.0

    def test_wrong_tool_in_the_third_turn_breaks_the_action_layer(self) -> None:
        made = trace(self.RIGHT), trace(number=2), trace(call("b"), number=3)
        report = LayerReport()
        report.add([each.to_dict() for each in results(self.CASE, *made).values()])
        (row,) = report.brief()
        assert row["layers"] == ["-", "fail", "fail"]
        assert row["broke"] == "action"

    def test_do_not_decide_the_trial(self) -> None:
        case = {**self.CASE, "thresholds": {"conversation_correctness": 0, "tool_correctness": 0.5}}
        found = results(case, trace(self.RIGHT), trace(call("c"), number=2), trace(self.RIGHT, number=3))
        assert found["tool_correctness"].success is False
        assert found["trial_correct"].success is True

    def test_uncaptured_arguments_are_no_failure_without_a_wrong_call(self) -> None:
        unknown, wrong = ToolCall("a"), call("b")
        assert score(self.CASE, "tool_correctness", trace(unknown), trace(number=2), trace(self.RIGHT, number=3)) == (
            "no_content"
        )
        found = results(self.CASE, trace(unknown), trace(number=2), trace(wrong, number=3))["tool_correctness"]
        assert found.success is False

    def test_ignore_interactions_that_did_not_take_place(self) -> None:
        assert score(self.CASE, "tool_correctness", trace(self.RIGHT)) == 1.0
        assert score({"interactions": [{"expected_answer": "hi"}]}, "tool_correctness", trace()) is None


def test_all_graders_are_unscored_if_the_user_simulator_failed() -> None:
    spoilt = trace(attributes={"pandaeval.simulator.failed": "m: A-9: the user cannot know that"})
    found = results({"expected_tools": [A], "forbidden_tools": ["b"]}, trace(call("b"), number=2), spoilt)
    assert {each.why for each in found.values()} == {Why.SIMULATOR_FAILED}
    assert {each.success for each in found.values()} == {None}
    assert found["trial_correct"].finding.reason.endswith("m: A-9: the user cannot know that")


class TestTrialCorrect:
    def test_grader_named_by_the_case_decides(self) -> None:
        case = {"expected_tools": [B], "graders": ["step_efficiency_ratio"], "minimum_steps": 1}
        assert score(case, "trial_correct", trace(call("b"))) == 1.0
        relaxed = {**case, "thresholds": {"tool_correctness": 0}}
        found = results(relaxed, trace(*[call("b")] * 3))
        assert found["tool_correctness"].success is True
        assert found["trial_correct"].finding.metadata["failed"] == ["step_efficiency_ratio"]

    def test_step_efficiency_does_not_decide_unless_the_case_names_it(self) -> None:
        found = results({"forbidden_tools": ["x"], "minimum_steps": 1}, trace(*[call("b")] * 9))
        assert found["step_efficiency_ratio"].success is False
        assert found["trial_correct"].score == 1.0

    def test_expected_answer_is_decided_by_the_judge_or_unknown(self) -> None:
        case = {"expected_answer": "42"}
        assert score(case, "trial_correct", trace()) == "insufficient_evidence"
        assert score(case, "trial_correct", trace(), answer_correctness=Score(0.7)) == 1.0
        assert score(case, "trial_correct", trace(), answer_correctness=Score(0.69)) == 0.0
        lost = Unscored(Why.JUDGE_FAILED, "gone")
        assert score(case, "trial_correct", trace(), answer_correctness=lost) == "insufficient_evidence"

    def test_failure_decides_even_if_another_grader_is_unknown(self) -> None:
        assert score({"expected_answer": "42", "forbidden_tools": ["a"]}, "trial_correct", trace(call("a"))) == 0.0

    def test_incomplete_trial_is_not_graded(self) -> None:
        cut = trace(call("b"), trigger=Trigger.MEMORY, complete=False)
        assert {each.why for each in results({"expected_tools": [B]}, cut).values()} == {
            "incomplete_trace",
            "insufficient_evidence",
        }

    def test_case_with_open_expectations_is_undecided(self) -> None:
        assert score({"open": ["expected_tools"], "forbidden_tools": ["a"]}, "trial_correct", trace()) == (
            "insufficient_evidence"
        )

    def test_result_id_depends_on_expectations_and_evidence(self) -> None:
        def id_of(case: dict[str, Any], *traces: Trace) -> str:
            return results(case, *traces)["trial_correct"].id

        base = id_of({"expected_tools": [B]}, trace(call("b")))
        assert id_of({"expected_tools": [B], "description": "other words"}, trace(call("b"))) == base
        assert id_of({"expected_tools": [A]}, trace(call("b"))) != base
        assert id_of({"expected_tools": [B]}, trace(call("b"), digest="other")) != base


class TestCustomGraders:
    """Graders given as ./file.py:function."""

    @staticmethod
    def _told(folder: Any, source: str, *names: str) -> dict[str, Result]:
        (folder / "g.py").write_text(source)
        (folder / "suite.json").write_text(json.dumps([{"id": "c", "graders": [f"{folder}/g.py:{n}" for n in names]}]))
        suite = read_suite(folder / "suite.json")
        made = TrialGrader(EVALUATOR, suite).results(Trial(suite.cases[0], "1", (trace(),)))
        return {each.metric: each for each in made}

    def test_result_ids_change_with_the_code_of_the_function(self, tmp_path: Any) -> None:
        made = []
        for code in ("True", "True", "bool(trial)", "not trial"):
            self._forget()
            made.append(self._told(tmp_path, f"def fine(trial): return {code}", "fine"))
        assert [each["trial_correct"].success for each in made] == [True, True, True, False]
        first, same, *others = (each["fine"].id for each in made)
        assert first == same
        assert len({first, *others}) == 3
        assert made[0]["trial_correct"].id != made[3]["trial_correct"].id

    @staticmethod
    def _forget() -> None:
        """Unload modules named ``g``, as if the process were new."""
        function.cache_clear()
        for name in [name for name in sys.modules if name.startswith("_pandaeval_own_g_")]:
            del sys.modules[name]

    def test_function_without_python_source_has_no_digest(self) -> None:
        assert source_of("math:sqrt") == ""

    def test_function_that_exits_is_unscored_and_leaves_the_trial_undecided(self, tmp_path: Any) -> None:
        found = self._told(tmp_path, "import sys\ndef leaves(trial): sys.exit(3)", "leaves")
        assert (found["leaves"].why, found["trial_correct"].why) == (Why.METRIC_ERROR, Why.INSUFFICIENT_EVIDENCE)

    @pytest.mark.parametrize(
        ("source", "names", "wrong"),
        [
            ("def _fine(trial): return True", ["_fine"], "name '_fine': write small letters"),
            ("def fine(trial): return True\nfine.layer = 'x'", ["fine"], "layer 'x'"),
            ("def fine(trial): return True\nFine = fine", ["fine", "Fine"], "have the same name, fine"),
        ],
    )
    def test_invalid_name_or_layer_and_duplicate_names_are_errors(
        self, tmp_path: Any, source: str, names: list[str], wrong: str
    ) -> None:
        with pytest.raises(UserError, match=wrong):
            self._told(tmp_path, source, *names)


class TestAbsentFindings:
    CASE: ClassVar = {"absent": [{"metric": "trace.grounding", "label": "contradicts_calls"}]}

    @staticmethod
    def _visit(said: str, number: int = 1, scope: str = RUN_SCOPE) -> Trace:
        """A trace of a session whose first model call has neither instructions nor history."""
        fare = call("fare", {"zone": "B"}, {"fare_eur": 7.2})
        made = trace(fare, number=number, said=said, input="What is the fare?", output=said, session_id="s")
        run, chat = made.spans
        asked = (Message("user", (Text("What is the fare?"),)),)
        return replace(made, spans=(replace(run, scope=scope), replace(chat, input=asked)))

    def test_fabricated_value_that_occurs_again_fails_the_case(self) -> None:
        found = results(self.CASE, self._visit("The fare is 9.80 EUR."))["finding_absent"]
        assert found.score == 0.0
        assert found.finding.reason.startswith(
            "the finding contradicts_calls occurred again: the answer states '9.80 EUR'"
        )
        assert score(self.CASE, "finding_absent", self._visit("The fare is 7.20 EUR.")) == 1.0

    def test_fabricated_value_in_a_later_trace_of_the_trial_fails_the_case(self) -> None:
        talk = self._visit("The fare is 7.20 EUR."), self._visit("As I wrote, it is 9.80 EUR.", number=2)
        assert score(self.CASE, "finding_absent", *talk) == 0.0

    def test_finding_is_unscored_if_another_program_ran_the_trial(self) -> None:
        others = self._visit("The fare is 9.80 EUR.", scope="shop")
        assert score(self.CASE, "finding_absent", others) == Why.INSUFFICIENT_EVIDENCE


class TestRunEnded:
    CASE: ClassVar = {"graders": ["run_ended"]}
    REFUSED = call("refund", {"order": 4}, {"ok": False, "error": "too late"})

    @pytest.mark.parametrize(
        ("run", "expected"),
        [
            (trace(), True),
            (trace(REFUSED, output="The refund was refused. How do you want to continue?"), True),
            (trace(REFUSED, call("transfer_to_human"), output="I transferred you."), True),
            (trace(REFUSED, output="The refund was refused: too late."), False),
            (trace(REFUSED, output="I have refunded the order."), False),
            (trace(blocked=("filter", "SAFETY")), False),
        ],
    )
    def test_trial_passes_if_response_passes_without_a_label(self, run: Trace, expected: bool) -> None:
        assert results(self.CASE, run)["run_ended"].success is expected

    def test_reason_of_a_missing_score_is_that_of_response(self) -> None:
        assert (
            score(self.CASE, "run_ended", trace(output=None, input="go", turns=(Turn("go", None),))) == Why.NO_CONTENT
        )
        assert score(self.CASE, "run_ended", trace(stopped="AbortError")) == Why.INCOMPLETE_TRACE
        assert score(self.CASE, "run_ended", trace(output="TERMINATE")) == Why.INSUFFICIENT_EVIDENCE

    def test_configured_end_tokens_declare_the_end(self) -> None:
        run, cases = trace(output="TERMINATE"), []
        run = replace(run, spans=tuple(replace(span, system="Be kind.") for span in run.spans))
        control = {"absent": [{"metric": "trace.response", "label": "control_token"}], **self.CASE}
        made = Case.model_validate({"id": "c", **control})
        for tokens in ((), ("TERMINATE",)):
            evaluator = Evaluator(Embedder(), EvaluatorSettings(end_tokens=tokens))
            graded = TrialGrader(evaluator, Suite(cases=(made,))).results(Trial(made, "1", (run,)))
            cases.append({each.metric: each for each in graded})
        before, after = cases
        for name in ("run_ended", "finding_absent"):
            assert (before[name].success, after[name].success) == (False, True)
            assert before[name].id != after[name].id


@pytest.mark.parametrize(
    ("part", "fails"), [({}, False), ({"kind": "regression"}, True), ({"scenario": {"goal": "A refund"}}, True)]
)
def test_a_wrong_capability_case_fails_the_run_only_with_a_scenario(part: dict[str, Any], fails: bool) -> None:
    case = {"id": "c", "kind": "capability", "output_format": {"contains": ["refunded"]}, **part}
    report, made = LayerReport(), Case.model_validate(case)
    TrialGrader(EVALUATOR, Suite(cases=(made,)), report.add).results(Trial(made, "1", (trace(said="no", output="no"),)))
    assert report.cases()["c"].fails is fails


def test_correct_trial_has_no_broken_layer() -> None:
    refused = call("refund", {"order": 4}, {"ok": False, "error": "too late"})
    made = Case.model_validate({"id": "c", "absent": [{"metric": "trace.response", "label": "false_success"}]})
    report = LayerReport()
    honest = trace(refused, said="The refund was refused: too late.", output="The refund was refused: too late.")
    found = TrialGrader(EVALUATOR, Suite(cases=(made,)), report.add).results(Trial(made, "1", (honest,)))
    assert {each.metric: each.success for each in found} == {
        "finding_absent": True,
        "run_ended": False,
        "trial_correct": True,
    }
    (row,) = report.brief()
    assert (row["correct"], row["layers"]) == (1, ["-", "-", "pass"])


UNTRACED = {"pandaeval.untraced": True}
NO_SPANS = "the agent sent no spans, so its tool calls are not known"


@pytest.mark.parametrize(
    ("case", "correct"),
    [
        ({"output_format": {"contains": ["done"]}}, 1.0),
        ({"output_format": {"contains": ["refunded"]}}, 0.0),
        ({"expected_tools": [A]}, None),
        ({"expected_tools": [A], "tool_match": "within"}, None),
        ({"expected_tools": []}, None),
        ({"forbidden_tools": ["delete_*"]}, None),
        ({"required_order": ["a"]}, None),
        ({"interactions": [{"expected_tools": [A]}]}, None),
        ({"absent": [{"metric": "trace.response", "label": "false_success"}]}, None),
        ({"exit_code": 0}, None),
        ({"expected_tools": [A], "output_format": {"contains": ["refunded"]}}, 0.0),
    ],
)
def test_answer_is_graded_without_spans_but_calls_are_unknown(case: dict[str, Any], correct: float | None) -> None:
    found = results(case, trace(attributes=UNTRACED))
    assert found["trial_correct"].score == correct
    unknown = {each.why: each.finding.reason for each in found.values() if each.metric != "trial_correct" and each.why}
    assert unknown == {Why.NO_CONTENT: NO_SPANS}


def test_end_state_and_custom_graders_need_no_spans_unless_they_read_calls(tmp_path: Any) -> None:
    (tmp_path / "own.py").write_text(
        "def state(trial): return {'sent': True}\n"
        "def polite(trial): return 'done' in trial.answer\n"
        "def calm(trial): return len(trial.calls) < 3\n"
    )
    own = f"{tmp_path}/own.py"
    case = {"expected_outcome": {"sent": True}, "end_state_from": f"{own}:state", "graders": [f"{own}:polite"]}
    assert score(case, "trial_correct", trace(attributes=UNTRACED)) == 1.0
    assert score({"graders": [f"{own}:calm"]}, "calm", trace(attributes=UNTRACED)) == Why.NO_CONTENT


@pytest.mark.parametrize(
    ("score", "band"),
    [(1.0, "perfect"), (0.99, "good"), (0.75, "good"), (0.74, "moderate"), (0.5, "moderate"), (0.49, "poor")],
)
def test_tool_score_falls_into_its_band(score: float, band: str) -> None:
    assert tool_band(score) == band


@pytest.mark.parametrize(("recorded", "noted"), [(0, False), (1, True), (19, True), (20, False)])
def test_regression_suite_with_fewer_than_20_recorded_failures_has_a_note(recorded: int, noted: bool) -> None:
    absent = [{"metric": "trace.response", "label": "false_success"}]
    cases = [{"id": str(at), "absent": absent} for at in range(recorded)] or [{"id": "other", "exit_code": 0}]
    told = " ".join(suite_warnings(Suite.model_validate({"cases": cases})))
    assert ("for a regression suite, collect at least 20" in told) == noted

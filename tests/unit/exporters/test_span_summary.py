"""Span fields for lists and searches."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pandaeval_collector.base.result import EvaluatorInfo, Result
from pandaeval_collector.base.score import Assumed, Score, Unscored, Why
from pandaeval_collector.exporters._evaluation_spans import spans
from pandaeval_collector.exporters._span_summary import MAX_TEXT, Role, encode, summarise
from pandaeval_collector.exporters.encode import address, encode_attributes, log_record
from pandaeval_otel.wire.own_output import is_own_span
from support.otlp_sink import attributes
from support.results import CODE, JUDGE, SPAN_ID, TRACE_ID, result

PAGE = "https://scores.example"
LOOP = result("tool_loop", Score(0.1666, "search was called 6 times", failed=True), evaluator=CODE)


def shown(*results: Result, page: str = "", shows_failed: bool = True) -> Span:
    """Return the span of these results."""
    [span] = spans(encode_attributes(results, page), shows_failed)
    return Span.FromString(span)


def facts(*results: Result) -> dict[str, Any]:
    return attributes(shown(*results).attributes)


def failing(number: int) -> list[Result]:
    return [result(f"m{n}", Score(n / 10, failed=True), evaluator=CODE) for n in reversed(range(number))]


def linked(span: Span) -> list[tuple[str, str, int]]:
    return [(link.trace_id.hex(), link.span_id.hex(), link.flags) for link in span.links]


def test_flat_scores_are_rounded_and_event_scores_are_exact() -> None:
    """Jaeger searches only for equal numbers."""
    span_facts = facts(
        result("tool_loop", Score(1 - 4 / 5, failed=True), evaluator=CODE), result("coherence", Score(2 / 3))
    )
    assert span_facts["pandaeval.score.tool_loop"] == span_facts["pandaeval.score.min"] == 0.2
    assert span_facts["pandaeval.score.coherence"] == 0.666667
    event = shown(result("tool_loop", Score(1 - 4 / 5, failed=True), evaluator=CODE)).events[0]
    assert attributes(event.attributes)["gen_ai.evaluation.score.value"] == 1 - 4 / 5, "the event has all digits"


class TestName:
    def test_passing_spans_have_fixed_names(self) -> None:
        assert shown(result()).name == "✓ evaluate"
        assert shown(result("plan_quality", evaluator=JUDGE)).name == "✓ evaluate judged"

    @pytest.mark.parametrize("finding", [Unscored(Why.NO_CONTENT), Score(0.5)], ids=["unscored", "no threshold"])
    def test_name_has_no_check_mark_if_no_result_passed(self, finding: Score | Unscored) -> None:
        assert shown(result(finding=finding, threshold=None)).name == "evaluate trace"
        by_code = isinstance(finding, Unscored)
        judged = shown(result("plan_quality", finding, evaluator=JUDGE, threshold=None))
        assert judged.name == ("evaluate trace" if by_code else "evaluate judged")

    def test_name_contains_the_failed_metric_and_no_score(self) -> None:
        assert shown(result(), LOOP).name == "✗ tool_loop"

    @pytest.mark.parametrize(("number", "names"), [(2, "m0, m1"), (3, "m0, m1 +1"), (5, "m0, m1 +3")])
    def test_name_lists_at_most_two_failed_metrics_worst_first(self, number: int, names: str) -> None:
        assert shown(*failing(number)).name == f"✗ {names}"

    def test_name_of_a_failed_judged_span_has_its_metric_once(self) -> None:
        assert shown(result("plan_quality", Score(0.2), evaluator=JUDGE)).name == "✗ plan_quality"

    @pytest.mark.parametrize(
        ("finding", "name"),
        [
            (Score(0.3), "✗ session helper"),
            (Score(0.9), "✓ session helper"),
            (Unscored(Why.NO_CONTENT), "evaluate session helper"),
        ],
    )
    def test_name_of_a_session_span_contains_the_agent(self, finding: Score | Unscored, name: str) -> None:
        of = {"level": "session", "trace_ids": (f"{TRACE_ID}:{SPAN_ID}",)}
        assert shown(result("agent_reliability", finding, agent="helper", **of)).name == name
        assert shown(result("agent_reliability", finding, agent="", **of)).name == name.removesuffix(" helper")

    @pytest.mark.parametrize(
        ("metric", "metadata"),
        [("goal_completion", {}), ("user_friction", {}), ("agent_reliability", {"band": "high_risk"})],
    )
    def test_only_correctness_gives_a_judged_session_a_verdict(self, metric: str, metadata: dict[str, Any]) -> None:
        of = {"level": "session", "trace_ids": (f"{TRACE_ID}:{SPAN_ID}",)}
        open_ = shown(result(metric, Score(0.0, metadata=metadata), agent="helper", **of))
        assert (open_.name, open_.status) == ("evaluate session helper", Status())
        assert "pandaeval.verdict" not in {each.key for each in open_.attributes}
        wrong = shown(result("correctness", Score(0.2), agent="helper", **of))
        assert wrong.name == "✗ session helper"
        assert {each.key: each.value.string_value for each in wrong.attributes}["pandaeval.verdict"] == "fail"


class TestParent:
    """The parent of an evaluation span."""

    def test_parent_of_a_failing_span_is_the_first_span_of_its_worst_result(self) -> None:
        mild = result("grounding", Score(0.5, span_ids=("00f067aa0ba902b9",), failed=True), evaluator=CODE)
        worst = result("tool_loop", Score(0.2, span_ids=("?", "00f067aa0ba902b8"), failed=True), evaluator=CODE)
        assert shown(mild, worst).parent_span_id.hex() == "00f067aa0ba902b8"

    def test_parent_is_the_evaluated_span_if_nothing_fails_or_no_span_is_named(self) -> None:
        passing = result("grounding", Score(0.9, span_ids=("00f067aa0ba902b8",)), evaluator=CODE)
        assert shown(passing).parent_span_id.hex() == SPAN_ID
        assert shown(LOOP).parent_span_id.hex() == SPAN_ID, "it names no span"

    def test_parent_is_the_blamed_step_if_the_failing_result_names_no_span(self) -> None:
        step = {"blame": {"span_id": "00f067aa0ba902b8"}}
        broke = result("tool_loop", Score(0.2, metadata=step, failed=True), evaluator=CODE)
        assert shown(broke).parent_span_id.hex() == "00f067aa0ba902b8"
        named = Score(0.2, metadata=step, failed=True, span_ids=("00f067aa0ba902b7",))
        assert shown(result("tool_loop", named, evaluator=CODE)).parent_span_id.hex() == "00f067aa0ba902b7"
        passing = result("tool_loop", Score(0.9, metadata=step), evaluator=CODE)
        assert shown(passing).parent_span_id.hex() == SPAN_ID

    @pytest.mark.parametrize("blame", [None, {}, {"span_id": None}, {"span_id": "step 3"}, "00f067aa0ba902b8"])
    def test_an_invalid_blamed_step_is_ignored(self, blame: Any) -> None:
        broke = result("tool_loop", Score(0.2, metadata={"blame": blame}, failed=True), evaluator=CODE)
        assert shown(broke).parent_span_id.hex() == SPAN_ID

    def test_evaluation_spans_are_recognised_as_own_spans(self) -> None:
        assert is_own_span(shown(result("tool_loop", Score(0.2, span_ids=("00f067aa0ba902b8",), failed=True))))
        assert is_own_span(shown(result()))

    def test_blamed_span_is_empty_unless_a_failing_result_names_a_span(self) -> None:
        named = result("tool_loop", Score(0.2, span_ids=("00f067aa0ba902b8",), failed=True))
        passing = result("tool_loop", Score(0.9, span_ids=("00f067aa0ba902b8",)))
        blamed = [
            encode(summarise([each]), Role("trace", "level", True), True).blamed for each in (LOOP, passing, named)
        ]
        assert blamed == [b"", b"", bytes.fromhex("00f067aa0ba902b8")]


class TestVerdict:
    def test_verdict_is_fail_if_one_result_fails(self) -> None:
        assert facts(result(), LOOP, result("a", Unscored(Why.NO_CONTENT)))["pandaeval.verdict"] == "fail"

    def test_verdict_is_pass_if_one_result_passes_and_none_fails(self) -> None:
        assert facts(result("a", Unscored(Why.NO_CONTENT)), result(finding=Score(0.75)))["pandaeval.verdict"] == "pass"

    @pytest.mark.parametrize("label", ["unclear", "disputed"])
    def test_verdict_is_the_label_of_an_undecided_result_unless_a_result_fails(self, label: str) -> None:
        undecided = result("correctness", Score(0.6, label=label))
        assert facts(undecided, result(finding=Score(0.75)))["pandaeval.verdict"] == label
        assert shown(undecided, result(finding=Score(0.75))).name == "evaluate trace"
        assert facts(undecided, LOOP)["pandaeval.verdict"] == "fail"

    def test_verdict_is_unscored_if_all_results_are_assumed(self) -> None:
        assert facts(result(finding=Assumed("no plan")))["pandaeval.verdict"] == "unscored"

    def test_verdict_is_hardly_checked_if_only_response_passes(self) -> None:
        ended = result("response", Score(1.0, "the run ended with an answer"), evaluator=CODE)
        assert facts(ended, result(finding=Assumed("no plan")))["pandaeval.verdict"] == "hardly_checked"
        assert shown(ended).name == "evaluate trace"
        assert facts(ended, result())["pandaeval.verdict"] == "pass"

    def test_an_excused_score_is_not_the_lowest(self) -> None:
        excused = result("loop_detection", Score(0.1, "asked for again", label="excused"))
        assert facts(excused, result(finding=Score(0.8)))["pandaeval.score.min"] == 0.8

    def test_verdict_is_unscored_if_nothing_was_scored(self) -> None:
        assert facts(result(finding=Unscored(Why.NO_CONTENT, "nothing captured"))).items() >= {
            ("pandaeval.verdict", "unscored"),
            ("pandaeval.reason", "nothing captured"),
        }

    def test_a_score_without_a_threshold_gives_no_verdict(self) -> None:
        assert "pandaeval.verdict" not in facts(result(threshold=None))


class TestPart:
    """A span with a part of the results passes no run."""

    BLAME = result("blame", Score(0.9, "a call of search"), threshold=None, evaluator=CODE)
    TURN = MappingProxyType({"level": "turn", "id": f"{TRACE_ID}:{SPAN_ID}"})

    def parts(self, *results: Result, later: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
        made = map(Span.FromString, spans(encode_attributes(results), later=later))
        return {span.name: attributes(span.attributes) for span in made}

    def test_spans_of_later_results_are_named_by_metric_and_never_pass(self) -> None:
        compared = result("loop_detection", Score(1.0), evaluator=CODE)
        assert "pandaeval.verdict" not in self.parts(compared, later=(TRACE_ID,))["✓ evaluate loop_detection"]
        assumed = result("loop_detection", Assumed("the first answer"), evaluator=CODE)
        assert "pandaeval.verdict" not in self.parts(assumed, later=(TRACE_ID,))["evaluate loop_detection"]
        assert "pandaeval.verdict" not in self.parts(self.BLAME, later=(TRACE_ID,))["evaluate blame"]
        assert self.parts(LOOP, later=(TRACE_ID,))["✗ tool_loop"]["pandaeval.verdict"] == "fail"

    def test_blame_is_in_the_span_of_the_failure(self) -> None:
        fails = result("tool_call_behavior_failure", Score(0.0, failed=True), evaluator=CODE, **self.TURN)
        found = self.parts(LOOP, fails, result("loop_detection", Assumed("first"), evaluator=CODE), self.BLAME)
        assert found.keys() == {"✗ tool_loop", "✗ tool_call_behavior_failure"}
        assert found["✗ tool_loop"]["pandaeval.score.blame"] == 0.9
        found = self.parts(result(), fails, self.BLAME)
        assert found["✗ tool_call_behavior_failure"]["pandaeval.score.blame"] == 0.9
        assert "pandaeval.verdict" not in found["✓ evaluate coherence"], "one of its turns fails"

    def test_passing_judged_or_turn_results_give_no_verdict_beside_a_failure(self) -> None:
        found = self.parts(LOOP, result("plan_quality", evaluator=JUDGE), result(evaluator=CODE, **self.TURN))
        assert {name: span_facts.get("pandaeval.verdict") for name, span_facts in found.items()} == {
            "✗ tool_loop": "fail",
            "✓ evaluate judged": None,
            "✓ evaluate turn_coherence": None,
        }


class TestAttributes:
    def test_each_score_has_an_attribute_with_the_name_of_its_metric(self) -> None:
        found = facts(
            result(finding=Score(1)), LOOP, result("plan", Assumed("none")), result("a", Unscored(Why.TIMEOUT))
        )
        scores = {key: value for key, value in found.items() if key.startswith("pandaeval.score.")}
        assert scores == {
            "pandaeval.score.coherence": 1.0,
            "pandaeval.score.tool_loop": 0.1666,
            "pandaeval.score.min": 0.1666,
        }
        assert all(type(value) is float for value in scores.values())

    def test_the_reason_is_that_of_the_worst_result(self) -> None:
        fine, low = result(), result("low", Score(0.1, "low, but it passes"), threshold=0.0)
        assert facts(fine, low)["pandaeval.reason"] == "low, but it passes"
        assert facts(fine, low, LOOP)["pandaeval.reason"] == "search was called 6 times", "it fails"

    def test_the_first_of_equally_bad_results_is_the_worst(self) -> None:
        first, second = (result(f"m{n}", Score(0.6, f"reason {n}"), evaluator=CODE) for n in range(2))
        assert facts(result(), first, second)["pandaeval.reason"] == "reason 0"
        failing = [result(f"m{n}", Score(0.1, f"reason {n}"), evaluator=CODE) for n in (2, 1, 3)]
        span = shown(*failing)
        assert (span.name, span.status.message) == ("✗ m2, m1 +1", "reason 2")
        assert attributes(span.attributes)["pandaeval.failed"] == ["m2", "m1", "m3"]

    def test_a_score_without_a_threshold_is_neither_lowest_nor_worst(self) -> None:
        blame = result("blame", Score(0.1, "a step"), threshold=None, evaluator=CODE)
        found = facts(blame, result(finding=Score(0.9, "fine")))
        assert (found["pandaeval.score.min"], found["pandaeval.score.blame"]) == (0.9, 0.1)
        assert (found["pandaeval.reason"], found["pandaeval.verdict"]) == ("fine", "pass")

    def test_a_task_score_without_a_threshold_can_be_the_lowest(self) -> None:
        found = facts(result("done", Score(0.1, "undone"), threshold=None, evaluator=CODE, level="task"))
        assert found["pandaeval.score.min"] == 0.1
        assert "pandaeval.blame" not in found

    def test_a_long_reason_is_shortened_in_every_field(self) -> None:
        long, cut = "x" * (MAX_TEXT + 1), "x" * (MAX_TEXT - 1) + "…"
        step = {"step": {"span_id": SPAN_ID}}
        span = shown(
            result("tool_loop", Score(0.1, long, failed=True), evaluator=CODE),
            result("blame", Score(0.75, long, metadata=step), threshold=None, evaluator=CODE),
        )
        found = attributes(span.attributes)
        assert found["pandaeval.reason"] == span.status.message == found["pandaeval.blame.reason"] == cut
        assert facts(result(finding=Score(0.1, "x" * MAX_TEXT)))["pandaeval.reason"] == "x" * MAX_TEXT

    def test_session_id_is_an_attribute_if_there_is_a_session(self) -> None:
        assert facts(result())["pandaeval.session.id"] == "session-1"
        assert "pandaeval.session.id" not in facts(result(session_id=None))

    def test_session_id_is_unchanged(self) -> None:
        assert facts(result(session_id="session-1@service:support"))["pandaeval.session.id"] == "session-1"


class TestBlame:
    """The wrong step beside a failure."""

    def told(self, label: str, step: Any) -> dict[str, Any]:
        finding = Score(0.75, "The wrong year.", metadata={"step": step}, label=label)
        found = facts(LOOP, result("blame", finding, threshold=None, evaluator=CODE))
        return {key: value for key, value in found.items() if key.startswith("pandaeval.blame")}

    def test_blame_has_label_span_tool_agent_and_reason(self) -> None:
        step = {"span_id": SPAN_ID, "tool": "search", "agent": "searcher"}
        assert self.told("tool_error", step) == {
            "pandaeval.blame": "tool_error",
            "pandaeval.blame.span_id": SPAN_ID,
            "pandaeval.blame.tool": "search",
            "pandaeval.blame.agent": "searcher",
            "pandaeval.blame.reason": "The wrong year.",
        }

    def test_unknown_tool_and_agent_of_the_step_are_left_out(self) -> None:
        blame_facts = self.told("tool_error", {"span_id": SPAN_ID})
        assert sorted(blame_facts) == ["pandaeval.blame", "pandaeval.blame.reason", "pandaeval.blame.span_id"]

    def test_blame_without_a_step_has_only_its_label(self) -> None:
        assert self.told("unsure", None) == {"pandaeval.blame": "unsure"}


class TestStatus:
    def test_status_is_an_error_with_the_reason_if_a_result_fails(self) -> None:
        status = shown(result(), LOOP).status
        assert (status.code, status.message) == (Status.StatusCode.STATUS_CODE_ERROR, "search was called 6 times")

    def test_status_message_is_the_metric_if_there_is_no_reason(self) -> None:
        assert shown(result(finding=Score(0.25))).status.message == "coherence"

    @pytest.mark.parametrize("finding", [Score(0.75, "fine"), Assumed("no plan"), Unscored(Why.JUDGE_FAILED, "down")])
    def test_status_is_unset_if_no_result_fails(self, finding: Score | Assumed | Unscored) -> None:
        assert shown(result(finding=finding)).status == Status()

    @pytest.mark.parametrize("evaluator", [CODE, JUDGE])
    def test_status_of_a_failure_can_be_switched_off(self, evaluator: EvaluatorInfo) -> None:
        failing = result("tool_loop", Score(0.1, "in circles"), evaluator=evaluator)
        span = shown(failing, shows_failed=False)
        assert (span.status, span.name) == (Status(), "✗ tool_loop")
        set_ = Status(code=Status.StatusCode.STATUS_CODE_ERROR, message="in circles")
        [span] = map(Span.FromString, spans(encode_attributes([failing])))
        assert (shown(failing).status, span.status) == (set_, set_), "the status is set by default"

    def test_status_message_of_a_session_lists_the_failed_metrics(self) -> None:
        of = {"level": "session", "trace_ids": (f"{TRACE_ID}:{SPAN_ID}",)}
        low, lower = (result(f"m{n}", Score(0.3 - n / 10), **of) for n in range(2))
        span = shown(low, lower)
        assert (span.name, span.status.message) == ("✗ session helper", "m1, m0")
        assert shown(low, lower, shows_failed=False).status == Status()


class TestLinks:
    def test_links_lead_to_cited_spans_if_the_finding_names_no_span(self) -> None:
        cited, named = "00f067aa0ba902b7", "00f067aa0ba902b8"
        about = {"judge": {"pack": "p", "tokens": dict.fromkeys(("input", "output", "cached"), 0), "calls": 1}}
        about["judge"] |= {"prompt_version": "1", "cost_usd": 0.0, "cited": [cited]}
        silent = {"judge": {key: value for key, value in about["judge"].items() if key != "cited"}}
        for finding, evaluator, expected in (
            (Score(0.2, metadata=about), JUDGE, [cited]),
            (Score(0.2, metadata=about, span_ids=(named,)), JUDGE, [named]),
            (Unscored(Why.TIMEOUT, metadata=about), JUDGE, [cited]),
            (Score(0.2, metadata=silent), JUDGE, []),
            (Score(0.2, metadata=about), CODE, []),
        ):
            found = linked(shown(result("plan_quality", finding, evaluator=evaluator)))
            assert found == [(TRACE_ID, each, 1) for each in expected]

    def test_links_lead_once_to_each_span_of_the_findings(self) -> None:
        first, second = "00f067aa0ba902b7", "00f067aa0ba902b8"
        looped = result("tool_loop", Score(0.2, span_ids=(first, second, first)), evaluator=CODE)
        span = shown(result(), looped, result("grounding", Score(0.9, span_ids=(second,)), evaluator=CODE))
        assert linked(span) == [(TRACE_ID, first, 1), (TRACE_ID, second, 1)]

    def test_a_span_has_at_most_128_links(self) -> None:
        looped = result("tool_loop", Score(0.2, span_ids=tuple(f"{n:016x}" for n in range(1, 500))), evaluator=CODE)
        assert [span_id for _, span_id, _ in linked(shown(looped))] == [f"{n:016x}" for n in range(1, 129)]

    def test_invalid_span_ids_get_no_link(self) -> None:
        odd = result("mine", Score(0.2, span_ids=("", "call 3", "00F067AA0BA902B7", "00f067aa0ba902b")), evaluator=CODE)
        assert not shown(odd).links


class TestUrl:
    def test_url_of_a_trace_opens_the_evaluated_span(self) -> None:
        address = f"{PAGE}/#/trace/{TRACE_ID}?span={SPAN_ID}"
        record = LogRecord.FromString(log_record(encode_attributes([result()], PAGE)[0]))
        assert attributes(shown(result(), page=PAGE).attributes)["pandaeval.url"] == address
        assert attributes(record.attributes)["pandaeval.url"] == address

    def test_url_of_a_session_encodes_its_id_as_browsers_do(self) -> None:
        of_session = result("agent_reliability", level="session", session_id="a b/ü?(1)")
        address = f"{PAGE}/#/session/a%20b%2F%C3%BC%3F(1)"
        assert attributes(shown(of_session, page=PAGE).attributes)["pandaeval.url"] == address

    @pytest.mark.parametrize(
        ("session_id", "path"),
        [(None, ""), ("a-b_c.d~e", "a-b_c.d~e"), ("!'()*", "!'()*"), ("a&b=c", "a%26b%3Dc"), ("\ud800", "%3F")],
    )
    def test_any_session_id_gives_a_valid_url(self, session_id: str | None, path: str) -> None:
        assert address(PAGE, "session", TRACE_ID, SPAN_ID, session_id) == f"{PAGE}/#/session/{path}"

    def test_there_is_no_url_without_a_page(self) -> None:
        assert "pandaeval.url" not in facts(result())
        record = LogRecord.FromString(log_record(encode_attributes([result()])[0]))
        assert "pandaeval.url" not in attributes(record.attributes)


def test_a_failing_evaluation_span_is_recognised_as_an_own_span() -> None:
    named = result("tool_loop", Score(0.2, "in circles", span_ids=(SPAN_ID,)), evaluator=CODE)
    for each in (named, result("plan_quality", Score(0.2, "poor"), evaluator=JUDGE)):
        assert is_own_span(shown(each, page=PAGE))

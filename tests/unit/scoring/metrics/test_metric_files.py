"""Metrics without a model, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.analysis.embedding.text import plain
from pandaeval_collector.analysis.stats.topic import content_tokens
from pandaeval_collector.base.score import Assumed, Score, Unscored
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.scoring.metric import (
    EarlierOutput,
    SessionContext,
    SessionSignal,
    SessionView,
    Texts,
    TraceContext,
    TraceSummary,
)
from pandaeval_collector.scoring.metrics.session.agent_consistency import METRIC as CONSISTENCY
from pandaeval_collector.scoring.metrics.session.agent_reliability import METRIC as RELIABILITY
from pandaeval_collector.scoring.metrics.trace.coherence import METRIC as COHERENCE
from pandaeval_collector.scoring.metrics.trace.loop_detection import METRIC as LOOP
from pandaeval_collector.scoring.metrics.trace.response import METRIC as RESPONSE
from pandaeval_collector.scoring.metrics.trace.tool_loop import METRIC as TOOL_LOOP
from pandaeval_otel.model import Trace, Trigger, Turn
from support.embedder import WordEmbedder
from support.judged import call
from support.results import CODE, result

BANDS = Bands(off=0.1, cut=0.3, on=0.5)
ASKED = "Which museums in Bergen open for families on Sunday mornings?"
ANSWERED = "Several galleries near the harbour welcome visitors at ten."
AWAY = "Sourdough bread rises slowly because wild yeast needs warmth."
VECTORS = {
    "question": np.array([1, 0], dtype=np.float32),
    "answer": np.array([0.6, 0.8], dtype=np.float32),
    ASKED: np.array([1, 0], dtype=np.float32),
    ANSWERED: np.array([0.6, 0.8], dtype=np.float32),
    AWAY: np.array([-1, 0], dtype=np.float32),
    "🎉 🎉": np.zeros(2, dtype=np.float32),
    "…": np.zeros(2, dtype=np.float32),
}
TEXTS = Texts(VECTORS, (), "tiny", BANDS)


def trace(*turns: Turn, **facts: object) -> Trace:
    base = Trace("a" * 32, (), "b" * 16, turns=turns, session_id="s")
    said = {"input": turns[0].user, "output": turns[-1].assistant} if turns else {}
    return replace(base, **{**said, **facts})  # type: ignore[arg-type]


class TestCoherence:
    def ask(self, subject: Trace) -> object:
        return COHERENCE.evaluate(subject, TraceContext(TEXTS, 0.3))

    def test_is_the_clamped_cosine(self) -> None:
        found = self.ask(trace(Turn(ASKED, ANSWERED)))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.6, abs=1e-7)
        assert found.metadata["coherence_gap"] == pytest.approx(0.4, abs=1e-7)
        assert found.metadata["calibrated"] == 1.0
        away = self.ask(trace(Turn(ASKED, AWAY)))
        assert isinstance(away, Score)
        assert away.value == 0.0

    def test_is_the_mean_of_several_turns(self) -> None:
        found = self.ask(trace(Turn(ASKED, ANSWERED), Turn(ASKED, AWAY)))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.3, abs=1e-7)

    @pytest.mark.parametrize(
        ("turn", "facts", "why"),
        [
            (Turn(None, None), {}, "no_content"),
            (Turn(ASKED, None), {}, "no_content"),
            (Turn(ASKED, ""), {}, "no_content"),
            (Turn(ASKED, "<|im_end|>"), {}, "no_content"),
            (Turn(ASKED, "…"), {}, "no_content"),
            (Turn(None, "answer", media_only=True), {}, "no_content"),
            (Turn(ASKED, ANSWERED), {"trigger": Trigger.SPAN_LIMIT, "complete": False}, "incomplete_trace"),
        ],
    )
    def test_without_evidence_there_is_no_score(self, turn: Turn, facts: dict[str, object], why: str) -> None:
        found = self.ask(trace(turn, **facts))
        assert isinstance(found, Unscored)
        assert found.why == why

    @pytest.mark.parametrize(
        ("turn", "facts"),
        [
            (Turn(ASKED, None), {"ends_in_tool_call": True}),
            (Turn(ASKED, ""), {"error": "boom"}),
            (Turn(ASKED, None), {"error": "boom"}),
        ],
    )
    def test_run_without_an_answer_has_no_result(self, turn: Turn, facts: dict[str, object]) -> None:
        assert self.ask(trace(turn, **facts)) is None

    def test_answer_to_an_empty_question_is_assumed(self) -> None:
        found = self.ask(trace(Turn("", "answer")))
        assert isinstance(found, Assumed)
        assert found.metadata["note"]

    def test_idle_trace_without_a_complete_root_is_scored(self) -> None:
        assert isinstance(self.ask(trace(Turn(ASKED, ANSWERED), trigger=Trigger.IDLE, complete=False)), Score)

    def test_threshold_is_the_cut_of_the_embedder_or_the_default(self) -> None:
        assert COHERENCE.threshold_for(BANDS) == 0.3
        assert COHERENCE.threshold_for(None) == 0.5


def test_json_becomes_its_leaf_values() -> None:
    assert plain('{"city": "Oslo", "days": [1, {"rain": true}], "x": null}') == "Oslo\n1\nTrue"
    assert plain("{not json") == "{not json"
    assert plain(" plain ") == "plain"


class TestToolLoop:
    def ask(self, blind: int, *, twice: bool = False) -> object:
        hidden = [call(n, "look", arguments=None, has_arguments=False) for n in range(1, blind + 1)]
        values = (7, 7) if twice else (6, 7, 8)
        seen = [call(n, result=value, arguments={"q": value}) for n, value in enumerate(values, 6)]
        return TOOL_LOOP.evaluate(trace(tool_calls=(*hidden, *seen)), TraceContext(TEXTS, 0.5))

    def test_coverage_and_reason_count_calls_that_cannot_be_compared(self) -> None:
        found = self.ask(2)
        assert isinstance(found, Score)
        assert (found.value, found.coverage) == (1.0, 0.6)
        gap = "arguments or results of 2 of 5 calls were not captured"
        assert found.reason == f"no needless repetition in 5 tool calls; {gap}"
        whole = self.ask(0)
        assert isinstance(whole, Score)
        assert (whole.coverage, whole.reason) == (1.0, "no needless repetition in 3 tool calls")

    @pytest.mark.parametrize("twice", [False, True])
    def test_run_without_a_loop_has_no_score_if_most_calls_cannot_be_compared(self, twice: bool) -> None:
        known = self.ask(0, twice=twice)
        assert isinstance(known, Score)
        assert (known.value, known.failed) == (0.5 if twice else 1.0, False)
        found = self.ask(5, twice=twice)
        assert isinstance(found, Unscored)
        assert found.why == "no_content"


class TestLoopDetection:
    def ask(self, subject: Trace, *earlier: EarlierOutput) -> object:
        return LOOP.evaluate(subject, TraceContext(TEXTS, 0.5, earlier))

    def before(self, text: str, index: int = 0) -> EarlierOutput:
        return EarlierOutput("c" * 32, index, VECTORS[text], content_tokens(text))

    def test_needs_a_session(self) -> None:
        assert self.ask(trace(Turn("question", "answer"), session_id=None)) is None

    def test_first_answer_of_a_session_is_assumed(self) -> None:
        assert isinstance(self.ask(trace(Turn("question", "answer"))), Assumed)

    @pytest.mark.parametrize("answer", ["", " ...", "###STOP###"])
    def test_blank_answer_is_no_content(self, answer: str) -> None:
        found = self.ask(trace(Turn("question", answer)), self.before("answer"))
        assert isinstance(found, Unscored)
        assert found.why == "no_content"

    def test_first_answer_without_comparable_words_or_symbols_is_no_content(self) -> None:
        texts = Texts({"👍": np.zeros(2, np.float32)}, (), "test", None)
        found = LOOP.evaluate(trace(Turn("question", "👍")), TraceContext(texts, 0.5))
        assert isinstance(found, Unscored)
        assert (found.why, found.reason) == ("no_content", "the answer has no words or symbols to compare")

    def test_reason_names_the_repeated_or_most_similar_answer(self) -> None:
        again = self.ask(trace(Turn("question", "answer")), self.before("answer", 6))
        other = self.ask(trace(Turn("question", "answer")), self.before("question", 4))
        assert isinstance(again, Score)
        assert isinstance(other, Score)
        assert again.reason.startswith("repeats the answer of trace 7 of this session (similarity 1.00")
        assert other.reason.startswith(
            "repeats no earlier answer; the most similar is the answer of trace 5 of this session"
        )

    def test_failed_or_unfinished_run_has_no_result(self) -> None:
        assert self.ask(trace(Turn("question", None), error="boom"), self.before("answer")) is None
        assert self.ask(trace(Turn("question", None), ends_in_tool_call=True), self.before("answer")) is None

    @pytest.mark.parametrize("error", [None, "upstream: GatewayError: no route to the model"])
    def test_error_in_place_of_an_answer_has_no_result(self, error: str | None) -> None:
        """Two failed runs with the same error are no loop. `response` reports both."""
        said = "GatewayError: no route to the model"
        texts = Texts({said: VECTORS["answer"]}, (), "tiny", BANDS)
        before = EarlierOutput("c" * 32, 0, VECTORS["answer"], content_tokens(said))
        assert LOOP.evaluate(trace(Turn("question", said), error=error), TraceContext(texts, 0.5, (before,))) is None

    def test_uncaptured_answer_is_no_content(self) -> None:
        found = self.ask(trace(Turn("question", None)), self.before("answer"))
        assert isinstance(found, Unscored)
        assert found.why == "no_content"

    def test_repeated_answer_scores_zero(self) -> None:
        found = self.ask(trace(Turn("question", "answer")), self.before("question", 4), self.before("answer", 6))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.0, abs=1e-9)
        assert found.metadata["window_size"] == 3
        assert found.metadata["max_hybrid"] == pytest.approx(1.0, abs=1e-9)
        comparisons = found.metadata["comparisons"]
        assert [each["trace_index"] for each in comparisons] == [4, 6], "oldest first, by position in the session"
        assert comparisons[0]["hybrid_score"] == 0.0, "near in meaning, but no word shared"

    def again(self, said: str, earlier: str, **context: Any) -> Score:
        """Score an answer that has the same vector as an earlier answer."""
        texts = Texts({"answer": VECTORS["answer"], said: VECTORS["answer"]}, (), "tiny", BANDS)
        asked = context.pop("asked_then", frozenset())
        before = EarlierOutput("c" * 32, 0, VECTORS["answer"], content_tokens(earlier), asked)
        found = LOOP.evaluate(trace(Turn("question", said)), TraceContext(texts, 0.5, (before,), **context))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(1.0 - found.metadata["max_hybrid"], abs=1e-9), "always 1 - max_hybrid"
        return found

    SUMMARY = "Your booking: ferry to Oslo, visit V-670, for the family with one car. The total is 329 dollars."

    @pytest.mark.parametrize(
        ("said", "excuse"),
        [
            (SUMMARY.replace("329", "299"), "it contains new values: 299"),
            (SUMMARY.replace("Your booking:", "Your booking QKRMZP is made:"), "it contains new values: qkrmzp"),
            (SUMMARY, None),
        ],
    )
    def test_new_values_in_the_same_words_are_no_loop(self, said: str, excuse: str | None) -> None:
        found = self.again(said, self.SUMMARY)
        assert found.metadata.get("excused") == excuse
        assert (found.label, found.failed) == ("excused" if excuse else "suspect", False)

    @pytest.mark.parametrize(
        ("context", "excuse"),
        [
            ({"asked_again": True}, "the user asked for it again"),
            ({"changed": True}, "it reports work that was done in between"),
            ({"tried": True}, "it reports that a new try failed"),
            (
                {
                    "asked": content_tokens("Where is my parcel P7?"),
                    "asked_then": content_tokens("where's my parcel P7"),
                },
                "the question is the same",
            ),
        ],
    )
    def test_justified_repetition_is_excused(self, context: dict[str, Any], excuse: str) -> None:
        found = self.again(self.SUMMARY, self.SUMMARY, **context)
        assert (found.label, found.failed, found.metadata["excused"]) == ("excused", False, excuse)
        assert found.reason.startswith(f"repeats the answer of trace 1 of this session, but {excuse}")

    def test_same_answer_to_another_question_is_a_loop(self) -> None:
        asked, then = content_tokens("Where is my parcel?"), content_tokens("Can I have a refund?")
        loop = self.again(self.SUMMARY, self.SUMMARY, asked=asked, asked_then=then)
        assert (loop.label, loop.failed) == ("loop", True)
        assert loop.reason.startswith(
            "the question is new, but the answer repeats the answer of trace 1 of this session ("
        )
        near = self.SUMMARY.replace("The total is", "Altogether both of you pay tomorrow")
        found = self.again(near, self.SUMMARY, asked=asked, asked_then=then)
        assert 0.5 < found.metadata["max_hybrid"] < 0.9
        assert (found.label, found.failed) == ("suspect", False)
        upgraded = self.SUMMARY.replace("The total", "Upgraded total")
        found = self.again(upgraded, self.SUMMARY, asked=content_tokens("Is upgrading possible?"), asked_then=then)
        assert found.metadata["excused"] == "it uses words of the new question: upgraded"
        asked, then = frozenset({"parcel", "oslo", "soon"}), frozenset({"parcel", "oslo", "today"})
        assert self.again(self.SUMMARY, self.SUMMARY, asked=asked, asked_then=then).label == "suspect"
        assert self.again(self.SUMMARY, self.SUMMARY).label == "suspect", (
            "two messages without words are not the same question"
        )

    def test_repeated_request_to_wait_is_excused(self) -> None:
        said = "Please hold on, I am still checking your parcel."
        assert self.again(said, said).metadata["excused"] == "it asks the user to wait"

    def test_loop_signal_is_the_failing_score_or_every_raw_score(self) -> None:
        asked, then = content_tokens("Where is my parcel?"), content_tokens("Can I have a refund?")
        excused, suspect = self.again(self.SUMMARY, self.SUMMARY, changed=True), self.again(self.SUMMARY, self.SUMMARY)
        loop = self.again(self.SUMMARY, self.SUMMARY, asked=asked, asked_then=then)
        told = [result("loop_detection", finding, evaluator=CODE) for finding in (excused, suspect, loop)]
        assert [(each.success, each.label) for each in told] == [(None, "excused"), (None, "suspect"), (False, "loop")]
        sure, raw = Evaluator(WordEmbedder()), Evaluator(WordEmbedder(), EvaluatorSettings(loop_signal="raw"))
        assert [sure.signal_value(each) for each in told] == [1.0, 1.0, loop.value]
        assert [raw.signal_value(each) for each in told] == [excused.value, suspect.value, loop.value]

    def test_coherence_is_a_sure_signal_only_if_calibrated(self) -> None:
        gap = {"calibrated": 0.0}
        off = result("coherence", Score(0.01, "off", gap, label="off_topic", failed=True), evaluator=CODE)
        low, plain = (
            result("coherence", Score(0.1, "low", each, label="suspect"), evaluator=CODE) for each in (gap, {})
        )
        sure, raw = Evaluator(WordEmbedder()), Evaluator(WordEmbedder(), EvaluatorSettings(coherence_signal="raw"))
        assert [sure.signal_value(each) for each in (off, low, plain)] == [0.01, 1.0, None]
        assert [raw.signal_value(each) for each in (off, low, plain)] == [0.01, 0.1, 0.1]


def summary(crashed: bool = False, done: tuple[str, ...] = (), **signals: SessionSignal) -> TraceSummary:
    return TraceSummary("a" * 32, "d", crashed, signals, done)


SCORED = SessionSignal("scored", 0.9)
LOST = SessionSignal("unscored", None, "judge_failed")
BLANK = SessionSignal("unscored", None, "no_content")
ASSUMED = SessionSignal("assumed")


class TestResponse:
    def ask(self, subject: Trace) -> object:
        return RESPONSE.evaluate(subject, TraceContext(TEXTS, 0.5))

    def test_run_with_an_answer_passes(self) -> None:
        found = self.ask(trace(Turn("question", "answer")))
        assert isinstance(found, Score)
        assert (found.value, found.label, found.failed) == (1.0, None, False)

    @pytest.mark.parametrize(
        ("answer", "facts", "label"),
        [
            ("", {}, "empty_answer"),
            (None, {"error": "boom"}, "error"),
            ("answer", {"error": "boom"}, "error"),
        ],
    )
    def test_run_without_an_answer_or_with_an_error_fails_with_a_label(
        self, answer: str | None, facts: dict[str, object], label: str
    ) -> None:
        found = self.ask(trace(Turn("question", answer), **facts))
        assert isinstance(found, Score)
        assert (found.value, found.label, found.failed) == (0.0, label, True)
        assert found.span_ids

    @pytest.mark.parametrize(
        ("turn", "facts", "why"),
        [
            (Turn("question", None), {}, "no_content"),
            (Turn("question", "answer"), {"complete": False, "trigger": Trigger.IDLE}, "incomplete_trace"),
            (Turn("question", "answer"), {"complete": False, "trigger": Trigger.SHUTDOWN}, "incomplete_trace"),
        ],
    )
    def test_without_evidence_there_is_no_score(self, turn: Turn, facts: dict[str, object], why: str) -> None:
        found = self.ask(trace(turn, **facts))
        assert isinstance(found, Unscored)
        assert found.why == why


class TestSessions:
    def ask(self, *traces: TraceSummary, enabled: tuple[str, ...] = ("coherence", "loop_detection")) -> object:
        context = SessionContext(0.5, frozenset(enabled), {}, ("response", "tool_loop"), judged=True)
        return RELIABILITY.evaluate(SessionView("s", traces), context)

    def without_judge(self, *traces: TraceSummary) -> Score:
        context = SessionContext(0.5, frozenset({"coherence", "loop_detection"}), {}, ("response", "grounding"))
        found = RELIABILITY.evaluate(SessionView("s", traces), context)
        assert isinstance(found, Score)
        return found

    def test_worst_trace_decides_the_score(self) -> None:
        sure = SessionSignal("scored", 1.0)
        found = self.ask(summary(coherence=SCORED, confidence=sure), summary(coherence=SessionSignal("scored", 0.1)))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.1)
        assert found.metadata["band"] == "high_risk"
        assert "basis" not in found.metadata
        assert found.metadata["traces_evaluated"] == 2
        assert "trace 2 of 2" in found.reason

    def test_result_without_a_judge_names_its_evidence(self) -> None:
        found = self.without_judge(summary(coherence=SCORED, response=SessionSignal("scored", 1.0)))
        assert (found.label, found.metadata["basis"]) == ("no_problem_found", "inline")
        assert "band" not in found.metadata
        assert found.metadata["rests_on"] == {"coherence": 1, "response": 1}
        assert found.coverage == 0.5, "confidence and tool_correctness are missing"
        assert found.reason.startswith("no findings by rules (coherence, response); task success: not judged; ")

    def test_session_without_findings_has_the_label_no_problem_found(self) -> None:
        fine = SessionSignal("scored", 1.0)
        found = self.without_judge(summary(response=fine, grounding=SessionSignal("scored"), loop_detection=ASSUMED))
        assert (found.value, found.label, found.metadata["traces_evaluated"]) == (1.0, "no_problem_found", 0)

    @pytest.mark.parametrize(("blind", "outcome"), [(2, Score), (3, Unscored)])
    def test_no_problem_found_requires_half_of_the_applicable_checks(self, blind: int, outcome: type) -> None:
        unknown, fine = SessionSignal("unscored", None, "insufficient_evidence"), SessionSignal("scored", 1.0)
        unseen = dict.fromkeys(["grounding", "tool_loop", "loop_detection"][:blind], unknown)
        context = SessionContext(0.5, frozenset(), {}, ("response", "grounding", "tool_loop"))
        found = RELIABILITY.evaluate(SessionView("s", (summary(response=fine, coherence=fine, **unseen),)), context)
        assert isinstance(found, outcome)
        if isinstance(found, Unscored):
            assert (found.why, found.coverage) == ("insufficient_evidence", 2 / 5)
            assert "only 40% of the applicable checks could run" in found.reason

    def test_flagged_trace_is_a_problem_found_even_if_the_session_score_is_high(self) -> None:
        good, bad = SessionSignal("scored", 1.0), SessionSignal("scored", 0.0, said="'$90' appears in no result")
        found = self.without_judge(summary(response=bad), *[summary(coherence=good) for _ in range(19)])
        assert found.value > 0.5
        assert found.label == "problem_found"
        assert found.reason.startswith("1 finding by rules (response in 1 trace); task success: not judged; ")
        assert "worst: trace 1 of 20 (" in found.reason
        assert "'$90' appears in no result" in found.reason

    def test_session_that_was_not_sampled_uses_inline_signals(self) -> None:
        left_out = SessionSignal("unscored", None, "not_sampled")
        found = self.ask(summary(coherence=SCORED, confidence=left_out))
        assert isinstance(found, Score)
        assert (found.label, found.metadata["basis"], found.coverage) == ("no_problem_found", "inline", 1.0)

    @pytest.mark.parametrize(("later", "value"), [(("book",), 0.5), (("cancel",), 0.4), ((), 0.4)])
    def test_failure_is_repaired_if_the_tool_succeeds_later_in_the_session(
        self, later: tuple[str, ...], value: float
    ) -> None:
        lost = SessionSignal("scored", 0.4, said="book failed", lost="book")
        found = self.without_judge(
            summary(done=("book",), grounding=SessionSignal("scored")),
            summary(response=lost),
            summary(done=later, response=SessionSignal("scored", 1.0)),
        )
        assert found.value == pytest.approx(value)

    def test_crash_counts_even_if_the_trace_has_no_score(self) -> None:
        found = self.ask(summary(coherence=SCORED), summary(crashed=True, coherence=BLANK))
        assert isinstance(found, Score)
        assert ", response, risk 1.00: the run ended with an error" in found.reason
        assert found.value == 0.0

    def test_low_response_score_lowers_the_session_score(self) -> None:
        context = SessionContext(0.5, frozenset({"coherence"}), {}, ("response",))
        view = SessionView("s", (summary(coherence=SCORED), summary(response=SessionSignal("scored", 0.4))))
        found = RELIABILITY.evaluate(view, context)
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.4)
        assert "highest risk 0.60: response in trace 2 of 2" in found.reason

    def test_passing_response_is_no_signal(self) -> None:
        found = self.ask(summary(coherence=SCORED), summary(response=SessionSignal("scored", 1.0), coherence=BLANK))
        assert isinstance(found, Score)
        assert found.metadata["traces_evaluated"] == 1

    def test_crash_counts_even_if_the_root_span_is_missing(self) -> None:
        lost = SessionSignal("unscored", None, "incomplete_trace")
        found = self.ask(summary(coherence=SCORED), summary(crashed=True, response=lost))
        assert isinstance(found, Score)
        assert found.value == 0.0

    def test_response_signal_can_be_disabled(self) -> None:
        view = SessionView("s", (summary(coherence=SCORED), summary(response=SessionSignal("scored", 0.0))))
        found = RELIABILITY.evaluate(view, SessionContext(0.5, frozenset({"coherence"}), {}, ()))
        assert isinstance(found, Score)
        assert found.value == pytest.approx(0.9)

    def test_session_is_unscored_if_most_scores_are_missing(self) -> None:
        found = self.ask(summary(coherence=SCORED), summary(coherence=LOST), summary(coherence=LOST))
        assert isinstance(found, Unscored)
        assert found.why == "insufficient_evidence"
        assert found.metadata["partial_score"] == pytest.approx(0.9)
        assert found.coverage == pytest.approx(1 / 3)

    def test_half_of_the_expected_scores_is_enough(self) -> None:
        found = self.ask(summary(coherence=SCORED), summary(coherence=LOST))
        assert isinstance(found, Score)
        assert found.coverage == 0.5

    def test_traces_without_captured_content_do_not_prevent_a_score(self) -> None:
        assert isinstance(
            self.ask(summary(coherence=SCORED), summary(coherence=BLANK), summary(coherence=BLANK)), Score
        )

    def test_session_with_only_assumed_results_is_assumed(self) -> None:
        assert isinstance(self.ask(summary(coherence=ASSUMED, loop_detection=ASSUMED)), Assumed)

    def test_session_without_captured_content_is_unscored(self) -> None:
        found = self.ask(summary(coherence=BLANK))
        assert isinstance(found, Unscored)
        assert found.why == "no_content"

    def test_consistency_has_no_result_if_confidence_is_not_enabled(self) -> None:
        view = SessionView("s", (summary(coherence=SCORED),))
        assert CONSISTENCY.evaluate(view, SessionContext(0.5, frozenset({"coherence"}), {}, ())) is None

    def test_session_that_was_not_sampled_has_no_consistency_result(self) -> None:
        view = SessionView("s", (summary(confidence=SessionSignal("unscored", None, "not_sampled")), summary()))
        context = SessionContext(0.5, frozenset({"confidence"}), {}, (), judged=True)
        assert CONSISTENCY.evaluate(view, context) is None

    def test_consistency_is_unscored_when_the_judge_failed(self) -> None:
        view = SessionView("s", (summary(confidence=LOST, coherence=SCORED),))
        found = CONSISTENCY.evaluate(view, SessionContext(0.5, frozenset({"confidence", "coherence"}), {}, ()))
        assert isinstance(found, Unscored)
        assert found.why == "insufficient_evidence"

    def test_consistency_is_1_if_confidence_is_1(self) -> None:
        view = SessionView(
            "s", (summary(confidence=SessionSignal("scored", 1.0), coherence=SessionSignal("scored", 0.0)),)
        )
        found = CONSISTENCY.evaluate(view, SessionContext(0.5, frozenset({"confidence", "coherence"}), {}, ()))
        assert isinstance(found, Score)
        assert found.value == 1.0, "confidence 1.0 hides all other signals, as documented"
        assert found.metadata["session_profile"]

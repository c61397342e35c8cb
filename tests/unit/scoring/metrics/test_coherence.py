"""When coherence applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from pandaeval_collector.analysis.embedding import Bands, Embedder, KnownShare, knows
from pandaeval_collector.analysis.embedding.embedded import BANDS, EmbeddedEmbedder
from pandaeval_collector.analysis.embedding.text import embed_texts
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.pipeline.line.dependencies import signals_of
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_collector.scoring.metric import Texts, TraceContext
from pandaeval_collector.scoring.metrics.trace.coherence import METRIC
from pandaeval_otel.model import Kind, Message, Span, Text, Trace, Turn
from support.embedder import WordEmbedder
from support.results import result

REFUND = "How much would I get refunded for booking FJ-55120 if I cancel it today?"
TOWN = "Larvik is a charming coastal town, well known for its beech forest and its natural mineral water."
REFUNDED = "If you cancel booking FJ-55120 today, 80 percent of the price is refunded, which is 41.20 EUR."
BOOKED = "Your flight to Denver is booked, and the ticket was charged to your gift card."
FLIGHT = "I want to book a flight to Denver and pay with my gift card."


@pytest.fixture(scope="module")
def embedded() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


def trace(*turns: tuple[str, str], history: tuple[tuple[str, str], ...] = ()) -> Trace:
    messages = tuple(Message(role, (Text(text),)) for role, text in history)
    span = Span("a" * 32, "b" * 16, "", "chat", Kind.LLM, 0, 1, input=messages or None)
    return Trace("a" * 32, (span,), "b" * 16, turns=tuple(Turn(user, answer) for user, answer in turns))


def ask(embedder: Embedder, subject: Trace, threshold: float | None = None) -> Finding | None:
    found = embed_texts(embedder, METRIC.texts(subject) if METRIC.texts else ())
    texts = Texts(found.rows, found.chunked, embedder.id, embedder.bands, known=knows(embedder))
    limit = METRIC.threshold_for(embedder.bands) if threshold is None else threshold
    return METRIC.evaluate(subject, TraceContext(texts, limit))


def score(found: object) -> Score:
    assert isinstance(found, Score)
    return found


def assert_does_not_apply(found: object) -> None:
    assert isinstance(found, Unscored)
    assert (found.why, found.metadata) == (Why.INSUFFICIENT_EVIDENCE, {"applies": False})
    assert found.reason.startswith("does not apply: ")


class TestOnAndOff:
    def test_an_answer_to_the_question_is_on_topic(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((REFUND, REFUNDED))))
        assert found.value >= BANDS.cut
        assert found.metadata["calibrated"] == 1.0
        assert "off_topic" not in found.metadata
        assert found.reason.startswith("the answer is on topic (similarity ")

    def test_answer_about_another_subject_is_off_topic(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((REFUND, TOWN))))
        assert found.value < BANDS.sure
        assert (found.metadata["off_topic"], found.label, found.failed) == (True, "off_topic", True)
        assert found.metadata["calibrated"] == 0.0
        assert found.reason.startswith("the answer is off topic (similarity ")
        assert found.reason.endswith(", below the failure cut 0.02)")

    def test_answer_that_passes_the_threshold_is_never_off_topic(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((REFUND, TOWN)), 0.0))
        assert "off_topic" not in found.metadata
        assert found.reason.startswith("the answer is on topic (")

    @pytest.mark.parametrize(("limit", "passes"), [(0.4, True), (0.400001, False)])
    def test_reason_depends_on_the_threshold(self, limit: float, passes: bool) -> None:
        found = score(ask(Fixed(0.4), trace((FLIGHT, TOWN)), limit))
        assert (found.value >= limit - 1e-9) is passes
        what = "is on topic" if passes else "may be off topic"
        assert found.reason.startswith(f"the answer {what} (similarity 0.4")
        assert f"threshold {limit:.4g}" in found.reason


class Fixed:
    """Returns a constant cosine without bands."""

    id = "fixed"
    bands: Bands | None = None

    def __init__(self, cosine: float) -> None:
        self._cosine = cosine

    def embed(self, texts: object) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        other = (self._cosine, (1 - self._cosine**2) ** 0.5)
        return np.array([(1.0, 0.0), other][: len(list(texts))], np.float32)  # type: ignore[call-overload]


class TestDoesNotApply:
    @pytest.mark.parametrize(
        ("message", "answer"),
        [
            ("Yes, please proceed.", BOOKED),
            ("thanks!", "You're welcome! Have a great day."),
            ("Sure, my user ID is sophia_martin_4574.", "Here are your reservations from Orlando to New York."),
            ("Warranty?", "The cafeteria serves soup."),
            (REFUND, "Yes."),
            (REFUND, "4"),
            (REFUND, '{"percent": 80}'),
            ("Is the museum in Bergen open on Sunday mornings?", "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT."),
            (
                "Hi, I received a damaged bicycle during delivery.",
                "First, I need to authenticate your identity. Could you please provide your email address?",
            ),
        ],
    )
    def test_coherence_does_not_apply_if_message_and_answer_cannot_be_compared(
        self, embedded: EmbeddedEmbedder, message: str, answer: str
    ) -> None:
        assert_does_not_apply(ask(embedded, trace((message, answer))))

    def test_result_that_does_not_apply_is_no_session_signal(self, embedded: EmbeddedEmbedder) -> None:
        finding = ask(embedded, trace(("Warranty?", "The cafeteria serves soup.")))
        assert isinstance(finding, Unscored)
        assert signals_of(Evaluator(embedded), [result("coherence", finding)]) == {}
        missed = Unscored(Why.INSUFFICIENT_EVIDENCE, "the embedder does not know the answer")
        assert [*signals_of(Evaluator(embedded), [result("coherence", missed)])] == ["coherence"]

    def test_a_short_answer_can_still_be_on_topic(self, embedded: EmbeddedEmbedder) -> None:
        found = ask(embedded, trace(("What is the weather in Oslo?", "Cold weather in Oslo.")))
        assert score(found).value >= BANDS.cut


class TestTheTurnBefore:
    HISTORY = (("user", FLIGHT), ("assistant", "Shall I book it?"), ("user", "Yes, please do."))

    def test_a_message_without_a_subject_is_read_with_the_history(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace(("Yes, please do.", BOOKED), history=self.HISTORY)))
        assert found.value >= BANDS.cut
        assert found.metadata["with_turn_before"] == 1

    def test_message_without_a_subject_is_read_with_the_previous_turn_of_the_trace(
        self, embedded: EmbeddedEmbedder
    ) -> None:
        found = score(ask(embedded, trace((FLIGHT, BOOKED), ("Do it again.", BOOKED))))
        assert found.metadata["turns"] == 2
        assert found.metadata["with_turn_before"] == 1

    def test_answer_that_fits_neither_message_nor_history_is_below_the_cut(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace(("Yes, please do.", TOWN), history=self.HISTORY)))
        assert found.value < BANDS.cut

    def test_history_without_an_answer_is_not_used(self, embedded: EmbeddedEmbedder) -> None:
        alone = (("system", "Be kind."), ("user", "Yes, please do."))
        assert_does_not_apply(ask(embedded, trace(("Yes, please do.", BOOKED), history=alone)))

    def test_message_with_a_subject_is_read_without_the_history(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((REFUND, REFUNDED), history=self.HISTORY)))
        assert "with_turn_before" not in found.metadata


class TestTurns:
    def test_mean_includes_only_turns_to_which_coherence_applies(self, embedded: EmbeddedEmbedder) -> None:
        alone = score(ask(embedded, trace((REFUND, REFUNDED))))
        both = score(ask(embedded, trace((REFUND, REFUNDED), (FLIGHT, "Done!"))))
        assert both.value == alone.value
        assert both.metadata["turns"] == 1
        assert both.coverage == 1.0


GERMAN = "Guten Tag, ich möchte meine Bestellung zurückgeben und das Geld erstattet bekommen."
ANTWORT = "Gerne, wir erstatten das Geld, sobald die Bestellung bei uns eingetroffen ist."


class TestUnknownTexts:
    @pytest.mark.parametrize(("turn", "side"), [((GERMAN, ANTWORT), "message"), ((REFUND, ANTWORT), "answer")])
    def test_are_insufficient_evidence(self, embedded: EmbeddedEmbedder, turn: tuple[str, str], side: str) -> None:
        found = ask(embedded, trace(turn))
        assert isinstance(found, Unscored)
        assert found.why == "insufficient_evidence"
        assert found.reason.startswith(f"the embedder embedded-1 cannot read the {side}: only ")

    def test_lower_the_coverage_if_another_turn_is_scored(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((REFUND, REFUNDED), (GERMAN, ANTWORT))))
        assert found.coverage == 0.5
        assert found.metadata["turns"] == 1
        assert "; turns not read: 2 (the embedder embedded-1 cannot read the message: " in found.reason

    def test_give_no_score_if_fewer_than_half_of_the_turns_are_read(self, embedded: EmbeddedEmbedder) -> None:
        found = ask(embedded, trace((GERMAN, ANTWORT), (REFUND, REFUNDED), (REFUND, ANTWORT)))
        assert isinstance(found, Unscored)
        assert (found.why, found.coverage) == (Why.INSUFFICIENT_EVIDENCE, 1 / 3)
        assert found.reason.startswith("too few turns can be read: the answer is on topic (")
        assert "; turns not read: 1, 3 (the embedder embedded-1 cannot read the message: " in found.reason

    def test_give_a_score_if_the_read_turns_are_off_topic(self, embedded: EmbeddedEmbedder) -> None:
        found = score(ask(embedded, trace((GERMAN, ANTWORT), (REFUND, TOWN), (REFUND, ANTWORT))))
        assert (found.label, found.failed, found.coverage) == ("off_topic", True, 1 / 3)

    def test_are_reported_by_the_embedder(self) -> None:
        class Polyglot(WordEmbedder):
            def known(self, text: str) -> KnownShare:
                return KnownShare(0.0, "it rhymes") if "rose" in text else KnownShare()

        assert isinstance(ask(Polyglot(), trace((GERMAN, GERMAN + " Danke."))), Score)
        found = ask(Polyglot(), trace((GERMAN, "A rose is a rose is a flower in the garden.")))
        assert isinstance(found, Unscored)
        assert found.reason.endswith("it rhymes")


class TestWithoutCalibration:
    def facts(self) -> Mapping[str, object]:
        return score(ask(Fixed(0.6), trace((REFUND, TOWN)))).metadata

    def test_metadata_states_that_the_embedder_has_no_calibration(self) -> None:
        assert "calibrated" not in self.facts()
        assert self.facts()["calibration"] == "none: embedder fixed has no calibration"

    def test_dissimilar_answer_may_be_off_topic_but_is_not_marked(self) -> None:
        found = score(ask(Fixed(0.0), trace((FLIGHT, TOWN))))
        assert "off_topic" not in found.metadata
        assert found.reason.startswith("the answer may be off topic (similarity 0.00, below the threshold 0.50)")


@pytest.mark.parametrize("answer", [f"GatewayError: {TOWN}", TOWN])
def test_error_in_place_of_an_answer_has_no_result(answer: str) -> None:
    failed = replace(trace((FLIGHT, answer)), output=answer, error=f"503 {TOWN}")
    assert ask(Fixed(0.0), failed) is None
    assert isinstance(ask(Fixed(0.0), replace(failed, error="another error", output=TOWN)), Score)


def test_reason_names_the_missing_question_or_answer(embedded: EmbeddedEmbedder) -> None:
    for side, user, answer in (("answer", FLIGHT, None), ("question", None, TOWN)):
        found = ask(embedded, replace(trace(), turns=(Turn(user, answer),)))
        assert isinstance(found, Unscored)
        assert found.reason == f"not captured: the {side} (is content capture switched on?)"
    silent = ask(embedded, trace((FLIGHT, "")))
    assert isinstance(silent, Unscored)
    assert silent.reason == "no words to compare in the answer"


def test_reason_mentions_truncated_messages_instead_of_content_capture(embedded: EmbeddedEmbedder) -> None:
    note = "messages were cut short by a length limit"
    for notes, why in (((), "is content capture switched on?"), ((note,), note)):
        found = ask(embedded, replace(trace(), notes=notes))
        assert isinstance(found, Unscored)
        assert found.reason == f"not captured: the question and the answer ({why})"

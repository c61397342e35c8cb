"""Embedders: batch independence, empty text, quality and clear errors."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lab.bench import embedding_quality, embedding_set
from pandaeval_collector.analysis.embedding import Bands, EmbedderError, load, multilingual, schemes
from pandaeval_collector.analysis.embedding._wordpiece import LONGEST_WORD, WordPiece, words
from pandaeval_collector.analysis.embedding.embedded import BANDS, LONGEST_TEXT, EmbeddedEmbedder
from pandaeval_collector.analysis.embedding.litellm_embedding import BATCH, LiteLlmEmbedder
from pandaeval_collector.analysis.embedding.text import MOST_EMBEDDED, chunks, embed_texts

TEXTS = [
    "Your parcel left the warehouse and arrives tomorrow.",
    "",
    "Why does my bread not rise?",
    "Žluťoučký kůň, naïve café — 東京へ行きます",
    "refund " * 400,
    "The forecast says rain in the afternoon and sun on Sunday.",
    "x",
]


@pytest.fixture(scope="module")
def embedded() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


@pytest.fixture(scope="module")
def quality(embedded: EmbeddedEmbedder) -> embedding_quality.Quality:
    return embedding_quality.measure(embedded)


class TestEmbedded:
    @pytest.mark.parametrize("size", [1, 2, 3, len(TEXTS)])
    def test_rows_have_the_same_bits_in_any_batch(self, embedded: EmbeddedEmbedder, size: int) -> None:
        alone = np.vstack([embedded.embed([text]) for text in TEXTS])
        batches = [embedded.embed(TEXTS[start : start + size]) for start in range(0, len(TEXTS), size)]
        assert np.vstack(batches).tobytes() == alone.tobytes()

    def test_a_second_embedder_gives_the_same_bits(self, embedded: EmbeddedEmbedder) -> None:
        assert EmbeddedEmbedder().embed(TEXTS[::-1])[::-1].tobytes() == embedded.embed(TEXTS).tobytes()

    def test_rows_are_float32_of_length_one(self, embedded: EmbeddedEmbedder) -> None:
        rows = embedded.embed([text for text in TEXTS if text])
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows.astype(np.float64), axis=1) == pytest.approx(1.0, abs=1e-6)

    @pytest.mark.parametrize("text", ["", " \n\t ", "🎉👍🏽", "...", "\x00", "\ud800"])
    def test_text_without_words_becomes_a_row_of_zeros(self, embedded: EmbeddedEmbedder, text: str) -> None:
        assert not embedded.embed([text]).any()

    def test_an_empty_list_of_texts_gives_no_rows(self, embedded: EmbeddedEmbedder) -> None:
        assert embedded.embed([]).shape == (0, 256)

    def test_case_accents_and_punctuation_do_not_change_the_vector(self, embedded: EmbeddedEmbedder) -> None:
        first, second = embedded.embed(["Crème brûlée, please!", "creme BRULEE please"])
        assert first.tobytes() == second.tobytes()

    def test_only_the_beginning_of_a_long_text_is_embedded(self, embedded: EmbeddedEmbedder) -> None:
        text = ("weather " * LONGEST_TEXT)[:LONGEST_TEXT]
        first, second = embedded.embed([text, text + " mortgage" * 1000])
        assert first.tobytes() == second.tobytes()

    def test_a_small_word_cache_does_not_change_the_rows(
        self, embedded: EmbeddedEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = embedded.embed(TEXTS)
        monkeypatch.setattr("pandaeval_collector.analysis.embedding._wordpiece.CACHED_WORDS", 2)
        assert EmbeddedEmbedder().embed(TEXTS).tobytes() == before.tobytes()


class TestQuality:
    def test_the_stored_set_matches_its_build_script(self) -> None:
        assert embedding_set.SET.read_text("utf-8") == embedding_set.stored(embedding_set.build())

    def test_similarity_separates_answers_from_answers_to_other_questions(
        self, quality: embedding_quality.Quality
    ) -> None:
        assert embedding_quality.auroc(quality.answer, quality.other) >= 0.98

    def test_similarity_separates_copies_from_different_answers(self, quality: embedding_quality.Quality) -> None:
        assert embedding_quality.auroc(quality.copy, quality.different) >= 0.99

    def test_bands_separate_answers_from_answers_to_other_questions(self, quality: embedding_quality.Quality) -> None:
        assert quality.bands.cut == pytest.approx(BANDS.cut, abs=0.03)
        assert (quality.answer < BANDS.sure).mean() < 0.01
        assert (quality.other < BANDS.off).mean() > 0.7
        assert (quality.other >= BANDS.on).mean() < 0.02

    @pytest.mark.parametrize(
        ("right", "wrong", "share"),
        [([2.0, 3.0], [0.0, 1.0], 1.0), ([0.0], [1.0], 0.0), ([1.0], [1.0], 0.5), ([1.0, 3.0], [2.0, 2.0, 0.0], 2 / 3)],
    )
    def test_auroc_is_the_share_of_correctly_ordered_pairs(
        self, right: list[float], wrong: list[float], share: float
    ) -> None:
        assert embedding_quality.auroc(np.array(right), np.array(wrong)) == pytest.approx(share)

    @pytest.mark.parametrize("bands", [BANDS, multilingual.BANDS])
    def test_calibrated_similarity_rises_from_0_at_off_to_1_at_on(self, bands: Bands) -> None:
        middle = (bands.off + bands.on) / 2
        found = [bands.calibrated(cosine) for cosine in (-1.0, bands.off, middle, bands.on, 1.0)]
        assert found == pytest.approx([0.0, 0.0, 0.5, 1.0, 1.0])


class TestChunks:
    def test_short_text_stays_whole(self) -> None:
        assert chunks(" one two ", 9) == [" one two "]

    def test_long_text_is_cut_at_white_space_into_even_parts(self) -> None:
        text = " ".join(f"word{number}" for number in range(3000))
        parts = chunks(text, 5000)
        assert " ".join(parts) == text
        assert max(map(len, parts)) <= 5000
        assert min(map(len, parts)) > 4000

    def test_text_without_white_space_is_cut_at_the_limit(self) -> None:
        assert chunks("abcdefgh", 3) == ["abc", "def", "gh"]

    def test_chunks_of_white_space_hold_only_white_space(self) -> None:
        assert "".join(chunks(" " * 20, 3)).strip() == ""

    def test_a_limit_below_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 1"):
            chunks("text", 0)


class TestEmbedTexts:
    def test_each_text_is_embedded_once(self, embedded: EmbeddedEmbedder) -> None:
        spy = Mock(wraps=embedded)
        vectors = embed_texts(spy, ["a b", "c", "a b"])
        spy.embed.assert_called_once_with(["a b", "c"])
        assert set(vectors.rows) == {"a b", "c"}
        assert vectors.chunked == frozenset()

    def test_the_vector_of_a_long_text_is_the_mean_of_its_chunks(self, embedded: EmbeddedEmbedder) -> None:
        text = "rain tomorrow " * 3 + "loan interest " * 3
        vectors = embed_texts(embedded, [text, "short"], limit=45)
        mean = embedded.embed(chunks(text, 45)).mean(axis=0)
        assert vectors.chunked == {text}
        assert vectors.rows[text] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)

    def test_a_long_text_without_words_becomes_zeros(self, embedded: EmbeddedEmbedder) -> None:
        text = "... " * 100
        assert not embed_texts(embedded, [text], limit=50).rows[text].any()

    def test_only_the_beginning_of_a_huge_text_is_embedded(self, embedded: EmbeddedEmbedder) -> None:
        spy = Mock(wraps=embedded)
        beginning = "rain tomorrow " * (MOST_EMBEDDED // 14 + 1)
        longer = beginning + "loan interest " * 100_000
        rows = embed_texts(spy, [beginning[:MOST_EMBEDDED], longer]).rows
        assert sum(map(len, spy.embed.call_args[0][0])) <= 2 * MOST_EMBEDDED
        assert (rows[longer] == rows[beginning[:MOST_EMBEDDED]]).all()


class TestWordPiece:
    @given(
        st.dictionaries(st.from_regex(r"(##)?[ab]{1,4}", fullmatch=True), st.integers(0, 99), max_size=12),
        st.text("abc", max_size=LONGEST_WORD + 2),
    )
    def test_words_are_split_into_the_longest_pieces_from_the_left(self, vocabulary: dict[str, int], word: str) -> None:
        assert WordPiece(vocabulary).split(word) == _greedy(vocabulary, word)

    def test_lookups_for_a_long_word_stay_proportional_to_its_length(self) -> None:
        class Counted(dict[str, int]):
            looked_up = 0

            def __contains__(self, piece: object) -> bool:
                self.looked_up += 1
                return super().__contains__(piece)

        vocabulary = Counted({"a": 0, "##a": 1, "longest": 2})
        assert len(WordPiece(vocabulary).split("a" * LONGEST_WORD)) == LONGEST_WORD
        assert vocabulary.looked_up <= LONGEST_WORD * len("longest")


def _greedy(vocabulary: dict[str, int], word: str) -> tuple[int, ...]:
    """Return the pieces of a word by trying every length."""
    pieces: list[str] = []
    rest = word if len(word) <= LONGEST_WORD else "\0"
    while rest:
        tried = ("##" * bool(pieces) + rest[:end] for end in range(len(rest), 0, -1))
        piece = next((each for each in tried if each in vocabulary), None)
        if piece is None:
            return ()
        rest = rest[len(piece.removeprefix("##")) :]
        pieces.append(piece)
    return tuple(vocabulary[piece] for piece in pieces)


class TestLoad:
    def test_all_embedder_schemes_are_found(self) -> None:
        assert set(schemes()) == {"embedded", "multilingual", "litellm"}

    def test_embedded_is_loaded_by_name(self) -> None:
        embedder = load("embedded")
        assert (embedder.id, embedder.bands) == ("embedded-1", BANDS)

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ("word2vec", "unknown embedder 'word2vec': known are embedded, litellm, multilingual"),
            ("", "unknown embedder ''"),
            ("embedded:x", "takes no argument"),
            ("multilingual:x", "takes no argument"),
            ("litellm:", "write litellm:PROVIDER/MODEL"),
        ],
    )
    def test_the_error_for_an_invalid_spec_explains_the_cause(self, spec: str, message: str) -> None:
        with pytest.raises(EmbedderError, match=message):
            load(spec)

    def test_the_error_names_the_missing_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "litellm", None)
        with pytest.raises(EmbedderError, match=r'pip install "pandaeval-collector\[judge\]"'):
            load("litellm:openai/x")


def _answer(**request: Any) -> Any:
    """Return text lengths as vectors, in reverse order."""
    data = [
        {"index": index, "embedding": [3.0 * len(text), 4.0 * len(text)]} for index, text in enumerate(request["input"])
    ]
    return SimpleNamespace(data=data[::-1])


class TestLiteLlm:
    def test_rows_come_back_in_order_with_zeros_for_blank_texts(self) -> None:
        rows = LiteLlmEmbedder("provider/model", _answer).embed(["a", "  ", "bb"])
        assert rows == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0], [0.6, 0.8]]), abs=1e-6)

    def test_requests_are_batched(self) -> None:
        provider = Mock(wraps=_answer)
        assert LiteLlmEmbedder("p/m", provider).embed(["x"] * (BATCH + 1)).shape == (BATCH + 1, 2)
        assert [len(call.kwargs["input"]) for call in provider.call_args_list] == [BATCH, 1]

    def test_blank_texts_do_not_call_the_provider(self) -> None:
        embedder = LiteLlmEmbedder("p/m", lambda **request: pytest.fail("asked"))
        assert embedder.embed(["", " "]).shape == (2, 0)

    @pytest.mark.parametrize(
        ("vectors", "message"),
        [
            ([[1.0], [1.0, 2.0]], "unequal length"),
            ([[1.0], [float("nan")]], "not finite"),
            ([[1.0]], "1 vectors for 2 texts"),
        ],
    )
    def test_invalid_vectors_from_the_provider_are_an_error(self, vectors: list[list[float]], message: str) -> None:
        data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        with pytest.raises(EmbedderError, match=message):
            LiteLlmEmbedder("p/m", lambda **_: SimpleNamespace(data=data)).embed(["a", "b"])

    def test_the_error_names_the_failed_model_and_the_cause(self) -> None:
        def refuse(**_: Any) -> Any:
            raise ConnectionError("refused")

        with pytest.raises(EmbedderError, match="'p/m' failed: ConnectionError: refused"):
            LiteLlmEmbedder("p/m", refuse).embed(["a"])


class TestWords:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("Don't stop_me NOW, v2.0!", ["don", "t", "stop", "me", "now", "v2", "0"]),
            ("It’s “fine” – really…\x00ok", ["it", "s", "fine", "really", "ok"]),
            ("Crème BRÛLÉE, İzmir, \u212a9", ["creme", "brulee", "izmir", "k9"]),
            ("東京へ2行く", ["東", "京", "へ2", "行", "く"]),
            ("Žluťoučký—κόσμος", ["zlutoucky", "κοσμος"]),
            ("½ cup ①", ["½", "cup", "①"]),
            ("🎉 \u0301 _", []),
        ],
    )
    def test_are_normalized_runs_of_letters_and_digits(self, text: str, found: list[str]) -> None:
        assert words(text) == found

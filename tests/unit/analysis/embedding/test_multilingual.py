"""The multilingual embedder."""

from __future__ import annotations

import numpy as np
import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.analysis.embedding.embedded import LONGEST_TEXT
from pandaeval_collector.analysis.embedding.multilingual import BANDS, MultilingualEmbedder, Unigram, words

TEXTS = [
    "Wie wird das Wetter morgen in Hamburg?",
    "",
    "明日の天気は晴れで、気温は二十度です。",
    "Завтра в Москве ожидается дождь.",
    "मुझे अपना पासवर्ड बदलना है",
    "remboursement " * 400,
    "ขอเปลี่ยนรหัสผ่านหน่อย",
    "x",
]


@pytest.fixture(scope="module")
def multilingual() -> MultilingualEmbedder:
    return MultilingualEmbedder()


class TestMultilingual:
    @pytest.mark.parametrize("size", [1, 2, 3, len(TEXTS)])
    def test_rows_have_the_same_bits_in_any_batch(self, multilingual: MultilingualEmbedder, size: int) -> None:
        alone = np.vstack([multilingual.embed([text]) for text in TEXTS])
        batches = [multilingual.embed(TEXTS[start : start + size]) for start in range(0, len(TEXTS), size)]
        assert np.vstack(batches).tobytes() == alone.tobytes()

    def test_a_second_embedder_gives_the_same_bits(self, multilingual: MultilingualEmbedder) -> None:
        assert MultilingualEmbedder().embed(TEXTS[::-1])[::-1].tobytes() == multilingual.embed(TEXTS).tobytes()

    def test_rows_are_float32_of_length_one(self, multilingual: MultilingualEmbedder) -> None:
        rows = multilingual.embed([text for text in TEXTS if text])
        assert rows.dtype == np.float32
        assert np.linalg.norm(rows.astype(np.float64), axis=1) == pytest.approx(1.0, abs=1e-6)

    @pytest.mark.parametrize("text", ["", " \n\t ", "🎉👍🏽", "...", "\x00", "\ud800", "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ"])
    def test_text_without_known_words_becomes_a_row_of_zeros(
        self, multilingual: MultilingualEmbedder, text: str
    ) -> None:
        assert not multilingual.embed([text]).any()

    def test_an_empty_list_of_texts_gives_no_rows(self, multilingual: MultilingualEmbedder) -> None:
        assert multilingual.embed([]).shape[0] == 0

    def test_case_width_and_vowel_points_do_not_change_the_vector(self, multilingual: MultilingualEmbedder) -> None:
        for one, other in (
            ("ПОГОДА Завтра!", "погода завтра"),
            ("ＡＢＣ", "abc"),
            ("سَلَام", "سلام"),
            ("İzmir", "izmir"),
        ):
            first, second = multilingual.embed([one, other])
            assert first.tobytes() == second.tobytes()

    def test_only_the_beginning_of_a_long_text_is_embedded(self, multilingual: MultilingualEmbedder) -> None:
        text = ("wetter " * LONGEST_TEXT)[:LONGEST_TEXT]
        first, second = multilingual.embed([text, text + " hypothek" * 1000])
        assert first.tobytes() == second.tobytes()

    def test_a_small_word_cache_does_not_change_the_rows(
        self, multilingual: MultilingualEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = multilingual.embed(TEXTS)
        monkeypatch.setattr("pandaeval_collector.analysis.embedding._wordpiece.CACHED_WORDS", 2)
        assert MultilingualEmbedder().embed(TEXTS).tobytes() == before.tobytes()

    @pytest.mark.parametrize(
        ("request_", "answer", "elsewhere"),
        [
            (
                "Wie wird das Wetter morgen in Hamburg?",
                "Morgen regnet es am Vormittag, danach scheint die Sonne bei zwanzig Grad.",
                "Ihre Rückerstattung wurde auf das Bankkonto überwiesen.",
            ),
            (
                "Как мне изменить пароль?",
                "Откройте настройки учётной записи и введите новый пароль дважды.",
                "Завтра ожидается дождь и сильный ветер.",
            ),
            (
                "明日の天気はどうですか",
                "明日は午前中に雨が降り、午後は晴れて気温は二十度です。",
                "パスワードはアカウントの設定で変更できます。",
            ),
            (
                "कल मौसम कैसा रहेगा?",
                "कल सुबह बारिश होगी और दोपहर में धूप निकलेगी, तापमान बीस डिग्री।",
                "आप अपना पासवर्ड खाते की सेटिंग में बदल सकते हैं।",
            ),
            (
                "How do I change my password?",
                "Ouvrez les paramètres du compte et saisissez deux fois le nouveau mot de passe.",
                "Il pleuvra demain matin, puis le soleil brillera.",
            ),
        ],
    )
    def test_an_answer_is_closer_to_its_question_than_an_unrelated_answer(
        self, multilingual: MultilingualEmbedder, request_: str, answer: str, elsewhere: str
    ) -> None:
        asked, right, wrong = multilingual.embed([request_, answer, elsewhere])
        assert asked @ right > BANDS.cut > asked @ wrong

    @pytest.mark.parametrize("text", [*TEXTS, "1234", "🎉"])
    def test_texts_in_trained_scripts_are_known(self, multilingual: MultilingualEmbedder, text: str) -> None:
        assert multilingual.known(text)

    def test_text_in_an_untrained_script_is_not_known(self, multilingual: MultilingualEmbedder) -> None:
        known = multilingual.known("სწრაფი yes")
        assert not known
        assert known.lacks == "only 33% of its letters are in a script that the model knows"

    def test_multilingual_is_loaded_by_name(self) -> None:
        embedder = load("multilingual")
        assert (embedder.id, embedder.bands) == ("multilingual-1", BANDS)


class TestWords:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("Don't STOP_me", ["▁don", "▁t", "▁stop", "▁me"]),
            ("東京へ2行くiPhoneを", ["東京へ", "▁2", "行く", "▁iphone", "を"]),
            ("मौसम की जानकारी।", ["▁मौसम", "▁की", "▁जानकारी"]),
            ("การประชุม ใหญ่", ["การประชุม", "ใหญ่"]),
            ("날씨가 좋아요", ["▁날씨가", "▁좋아요"]),
            ("🎉 _ …", []),
        ],
    )
    def test_are_runs_of_letters_marks_and_digits(self, text: str, found: list[str]) -> None:
        assert words(text) == found


class TestUnigram:
    def test_takes_the_cheapest_pieces(self) -> None:
        vocabulary = {"▁a": 0, "▁ab": 1, "b": 2, "c": 3, "bc": 4}
        assert list(Unigram(vocabulary, bytes([9, 30, 9, 9, 9])).numbers("abc")) == [0, 4]
        assert list(Unigram(vocabulary, bytes([9, 5, 9, 9, 9])).numbers("abc")) == [1, 3]

    def test_skips_characters_without_a_piece(self) -> None:
        assert list(Unigram({"▁a": 0, "b": 1}, bytes([1, 1])).numbers("aßb ßß")) == [0, 1]

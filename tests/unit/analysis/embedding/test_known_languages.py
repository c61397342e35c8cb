"""Languages that an embedder knows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, Bands, KnownShare, knows
from pandaeval_collector.analysis.embedding.embedded import BANDS, EmbeddedEmbedder
from pandaeval_collector.analysis.embedding.litellm_embedding import LiteLlmEmbedder

ENGLISH = [
    "Which ferries go from Larvik to Hirtshals on 2026-05-14?",
    "Your reservation has been cancelled, and you will receive a full refund within 5 to 7 business days.",
    "Here is the list:\n1. Mechanical Keyboard - $235.13\n2. Headphones - $346.97\n3. Office Chair - $511.24",
    "I don’t remember my email right now, but my name is Mei Davis and my zip code is 80217.",
    "def total(items):\n    return sum(item.price for item in items if not item.returned)",
    "The flight lands at Zürich, and the café in Orléans opens at nine.",
]
OTHERS = {
    "German": "Guten Tag, ich möchte meine Bestellung zurückgeben und das Geld auf mein Konto erstattet bekommen.",
    "French": "Bonjour, je voudrais savoir quand ma commande sera livrée et si je peux encore changer l'adresse.",
    "Spanish": "Hola, quisiera cambiar la fecha de mi vuelo y saber cuánto cuesta llevar una maleta más.",
    "Italian": "Vorrei prenotare un tavolo per quattro persone domani sera, possibilmente vicino alla finestra.",
    "Portuguese": "Gostaria de cancelar a minha reserva e receber o reembolso no cartão que usei na compra.",
    "Dutch": "Ik wil graag mijn bestelling terugsturen omdat het niet is wat ik had verwacht.",
    "Swedish": "Jag skulle vilja boka en resa till Göteborg och behöver veta vad det kostar för två personer.",
    "Polish": "Chciałbym zmienić termin mojej rezerwacji, ale nie wiem, jak to zrobić na stronie.",
    "Turkish": "Siparişimi iptal etmek istiyorum çünkü yanlış adres girdim ve kargo henüz çıkmadı.",
    "Indonesian": "Saya ingin mengubah alamat pengiriman untuk pesanan yang saya buat kemarin sore.",
    "Vietnamese": "Tôi muốn đổi ngày bay của mình và hỏi xem có phải trả thêm tiền hay không.",
    "Latin": "Gallia est omnis divisa in partes tres quarum unam incolunt Belgae, aliam Aquitani.",
}
SCRIPTS = {
    "Chinese": "请帮我查询明天从北京到上海的高铁票价，并预订两张二等座。",
    "Japanese": "明日の午後に東京から大阪までの新幹線を二人分予約してください。",
    "Korean": "내일 오후 서울에서 부산까지 가는 기차표를 두 장 예약해 주세요.",
    "Russian": "Здравствуйте, я хочу вернуть заказ и получить деньги обратно на карту.",
    "Arabic": "أريد أن ألغي الحجز وأسترد المبلغ إلى بطاقتي الائتمانية.",
    "Hindi": "मैं अपनी बुकिंग रद्द करना चाहता हूँ और पैसे वापस चाहता हूँ।",
}


@pytest.fixture(scope="module")
def embedded() -> EmbeddedEmbedder:
    return EmbeddedEmbedder()


class TestTheEmbeddedModel:
    @pytest.mark.parametrize("text", ENGLISH)
    def test_knows_english(self, embedded: EmbeddedEmbedder, text: str) -> None:
        assert embedded.known(text)
        assert embedded.known(text).share > 0.5

    @pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
    def test_does_not_know_other_languages_in_latin_script(self, embedded: EmbeddedEmbedder, text: str) -> None:
        known = embedded.known(text)
        assert not known
        assert known.share < 0.5
        assert "are common English words" in known.lacks
        assert f"{known.share:.0%}" in known.lacks

    @pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
    def test_does_not_know_other_scripts(self, embedded: EmbeddedEmbedder, text: str) -> None:
        assert embedded.known(text) == KnownShare(0.0, "100% of its words are not in Latin script")

    @pytest.mark.parametrize("text", ["", "...", "ok", "FJ-88213", "555-123-2002", "Oslo", "4", "\ud800"])
    def test_short_texts_and_codes_count_as_known(self, embedded: EmbeddedEmbedder, text: str) -> None:
        assert embedded.known(text)

    def test_a_small_word_cache_does_not_change_the_known_share(
        self, embedded: EmbeddedEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pandaeval_collector.analysis.embedding._wordpiece.CACHED_WORDS", 2)
        texts = [*ENGLISH, *OTHERS.values(), *SCRIPTS.values()]
        assert [EmbeddedEmbedder().known(text) for text in texts] == [embedded.known(text) for text in texts]

    def test_the_language_of_a_long_text_is_read_from_its_beginning(self, embedded: EmbeddedEmbedder) -> None:
        assert embedded.known(ENGLISH[1] * 10 + OTHERS["German"])
        assert not embedded.known(OTHERS["German"] * 10 + ENGLISH[1])


class TestKnows:
    def test_an_embedder_without_a_known_method_counts_as_knowing_every_text(self) -> None:
        class Plain:
            id, bands = "plain", None

            def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
                return np.ones((len(texts), 1), np.float32)

        assert knows(Plain())(SCRIPTS["Korean"]) is ALL_KNOWN

    def test_hosted_models_are_taken_to_know_every_language(self) -> None:
        assert knows(LiteLlmEmbedder("some/model", print))(SCRIPTS["Korean"]) is ALL_KNOWN

    def test_the_known_method_of_an_embedder_is_used(self, embedded: EmbeddedEmbedder) -> None:
        assert not knows(embedded)(SCRIPTS["Korean"])


class TestBands:
    def test_the_sure_limit_is_zero_if_it_was_not_measured(self) -> None:
        assert Bands(0.1, 0.3, 0.5).sure == 0.0

    def test_cuts_are_in_order(self) -> None:
        assert 0.0 < BANDS.sure <= BANDS.off < BANDS.cut < BANDS.on < 1.0

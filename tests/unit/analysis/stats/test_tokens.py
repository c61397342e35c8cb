"""Content words."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.stats.topic import STOPWORDS_VERSION
from pandaeval_collector.stats import content_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", set()),
        ("the of and", set()),
        ("Your refund was sent.", {"refund", "sent"}),
        ("REFUND refund Refund", {"refund"}),
        ("a b c 1 22", {"22"}),
        ("order #W12-345: $19.99", {"order", "w12", "345", "19", "99"}),
        ("snake_case, camelCase", {"snake", "case", "camelcase"}),
        ("the customer's order", {"customer", "order"}),
        ("it's the user’s turn", {"user", "turn"}),
        ("ＦＵＬＬ ﬁnd", {"full", "find"}),
        ("Straße STRASSE", {"strasse"}),
        ("退款已发", {"退", "款", "已", "发"}),
        ("ありがとう", {"あ", "り", "が", "と", "う"}),
        ("我的order已shipped", {"我", "的", "order", "已", "shipped"}),
        ("환불 완료", {"환불", "완료"}),
        ("धन्यवाद हिन्दी", {"धन्यवाद", "हिन्दी"}),
        ("cafe\u0301 café", {"café"}),
        ("the café's menu of é", {"café", "menu"}),
        ("Zoë’s café—naïve", {"zoë", "café", "naïve"}),
        ("don't i 'quoted' a's", {"don't", "quoted"}),
    ],
)
def test_content_tokens_are_words_without_stop_words(text: str, tokens: set[str]) -> None:
    assert content_tokens(text) == tokens


@pytest.mark.parametrize("negator", ["not", "no", "never", "without", "nor", "none", "cannot", "don't", "isn’t"])
def test_negations_are_content_words(negator: str) -> None:
    assert content_tokens(f"it is {negator} refunded") != content_tokens("it is refunded")


def test_the_stop_list_has_a_version() -> None:
    assert STOPWORDS_VERSION == "1"

"""Amounts in many currencies, scripts and groupings."""

from __future__ import annotations

import pytest

from pandaeval_collector.analysis.rules.grounding.values import fold, scan


def amounts(text: str) -> list[float | str]:
    return [value.keys[0] for value in scan(fold(text)) if value.kind == "amount"]


@pytest.mark.parametrize(
    "text",
    [
        *("249 kroner", "249 kronor", "249 korun", "249 złotych", "249 forint", "249 рублей", "249 рубля", "249 лева"),
        *("249 lira", "249 บาท", "249 đồng", "249 гривень", "249 ευρώ", "249 ريال", "249 جنيه", "249 تومان", "249 שקל"),
        *("249 रुपये", "249 টাকা", "249 ரூபாய்", "249 روپے", "249 dolarów", "249 долларов", "249 eura", "249 eiro"),
        *("249 pesos", "249 reais", "249 rupiah", "249 ringgit", "249 тенге", "249 lei", "249 dinara", "249 franken"),
        *("249 欧元", "249人民币", "249ユーロ", "249ドル", "249 달러", "249원", "249块", "249 shilingi", "249 euros"),
        *("Rp 249", "Rs. 249", "RM 249", "kr 249", "Fr. 249", "₱249", "₦ 249", "NT$249", "249 VND", "UAH 249"),
    ],
)
def test_currency_words_and_symbols_mark_an_amount(text: str) -> None:
    assert amounts(text) == [249.0]


@pytest.mark.parametrize("text", ["٢٤٩ ريالا", "۲۴۹ تومان", "२४९ रुपये", "২৪৯ টাকা", "２４９円", "￥２４９", "๒๔๙ บาท"])
def test_amounts_with_digits_of_other_scripts_are_read(text: str) -> None:
    assert amounts(text) == [249.0]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("12万8千円", 128_000.0),
        ("12万8000円", 128_000.0),
        ("1億2000万円", 120_000_000.0),
        ("1億2,000万5千円", 120_005_000.0),
        ("3만5천원", 35_000.0),
        ("1만 2천 원", 12_000.0),
        ("2조 3000억 원", 2.3e12),
        ("12.5万元", 125_000.0),
        ("5千円", 5_000.0),
        ("12万円", 120_000.0),
    ],
)
def test_east_asian_number_units_are_converted(text: str, amount: float) -> None:
    assert amounts(text) == [amount]


@pytest.mark.parametrize("text", ["3 real options", "we won 3 games", "12月8日", "3時30分", "8万5千人", "5 levels"])
def test_numbers_without_a_currency_are_no_amounts(text: str) -> None:
    assert amounts(text) == []


def test_a_date_after_a_number_with_unit_stays_a_date() -> None:
    assert [value.kind for value in scan(fold("12万 8月3日"))] == ["number", "date"]

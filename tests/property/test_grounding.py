"""Copied values are grounded in any spelling, in linear time."""

from __future__ import annotations

import sys
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pandaeval_collector.analysis.rules.grounding import evidence as reading
from pandaeval_collector.analysis.rules.grounding.claims import of_answer
from pandaeval_collector.analysis.rules.grounding.values import _CODES as CODES, fold, readings, scan
from tests.unit.analysis.rules.test_grounding import call, outcome, run

SCRIPTS = ["０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "০১২৩৪৫৬৭৮৯"]
MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905 - words to be read
GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()  # noqa: SIM905 - words to be read
days = st.dates(min_value=date(1990, 1, 1), max_value=date(2100, 12, 31))
spelling = st.integers(0, 5)


def stands(had: Any, answer: str) -> None:
    assert outcome(run("And?", answer, call("look", {}, had))) in ("grounded", "no claim"), (had, answer)


@settings(max_examples=60)
@given(st.integers(10, 10**7), st.integers(0, 99), st.integers(0, 4), st.booleans())
def test_a_copied_amount_is_grounded_in_any_spelling(whole: int, cents: int, how: int, as_text: bool) -> None:
    english = f"{whole:,}.{cents:02d}"
    swapped = english.translate(str.maketrans(",.", ".,"))
    spellings = [english, swapped, english.replace(",", "'"), swapped.replace(".", " "), f"{whole}.{cents:02d}"]
    assert readings(spellings[how])[0] == float(f"{whole}.{cents:02d}")
    stands({"price": english if as_text else float(f"{whole}.{cents:02d}")}, f"The price is {spellings[how]} EUR.")


@settings(max_examples=60)
@given(days, spelling, spelling)
def test_a_copied_date_is_grounded_in_any_spelling(day: date, how: int, as_told: int) -> None:
    spellings = [
        day.isoformat(),
        f"{day.year}/{day.month}/{day.day}",
        f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
        f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}",
        f"{day.day}. {GERMAN[day.month - 1]} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ]
    [found] = scan(fold(f"on {spellings[how]} it is"))
    assert (found.kind, found.keys) == ("date", (float(day.year * 10000 + day.month * 100 + day.day),))
    stands({"booked": spellings[as_told]}, f"You are booked on {spellings[how]}.")


@settings(max_examples=60)
@given(st.integers(1, 23), st.integers(0, 59), st.integers(0, 3))
def test_a_copied_time_is_grounded_in_any_spelling(hour: int, minute: int, how: int) -> None:
    twelve = f"{(hour - 1) % 12 + 1}:{minute:02d} {'pm' if hour >= 12 else 'am'}"
    spellings = [f"{hour}:{minute:02d}", f"{hour:02d}:{minute:02d}:00", f"{hour}時{minute}分", twelve]
    stands({"departs": f"{hour:02d}:{minute:02d}"}, f"It departs at {spellings[how]} sharp.")


@settings(max_examples=60)
@given(
    # Letters that are no currency: QAR0001 may be an amount.
    st.from_regex(r"[LMQV][A-Z]{1,2}[0-9]{4,6}", fullmatch=True).filter(lambda name: name[:3] not in CODES),
    st.sampled_from(["{}", "#{}", "({})", "**{}**", "{}."]),
)
def test_a_copied_identifier_is_grounded_in_any_spelling(name: str, around: str) -> None:
    for spelled in (name, name.lower(), f"{name[:2]}-{name[2:]}"):
        stands({"ref": spelled}, f"Your booking is {around.format(name)} now.")


@given(st.integers(10, 10**8), st.sampled_from(SCRIPTS))
def test_digits_of_other_scripts_are_folded_to_ascii(number: int, digits: str) -> None:
    assert fold(str(number).translate(str.maketrans("0123456789", digits))) == str(number)


@given(st.integers(1, 999), st.sampled_from([("k", 1e3), (" million", 1e6), ("万", 1e4), ("bn", 1e9), ("万亿", 1e12)]))
def test_scale_words_multiply_the_number(number: int, scale: tuple[str, float]) -> None:
    assert readings(f"{number}{scale[0]}") == (number * scale[1],)


@given(st.text(max_size=300))
def test_found_values_and_claims_are_parts_of_the_text(text: str) -> None:
    folded = fold(text)
    for value in scan(folded):
        assert folded.startswith(value.text, value.start)
        assert value.keys
    for claim in of_answer(folded, ""):
        assert claim.sentence in folded
        assert claim.value.text in claim.sentence or len(claim.value.text) > 400


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=5), each, max_size=4),
    )
)
def test_any_json_value_is_read(value: Any) -> None:
    content = reading.parsed_content(value)
    assert all(field.value.keys for field in content.fields)


HOSTILE = {
    "digits": "7" * 20_000,
    "numbers": "1.5 " * 5_000,
    "dashes": "a-" * 10_000 + "1",
    "dots": "a." * 10_000 + "@b",
    "mail": "a" * 20_000 + "@",
    "signs": "$1.2.3," * 3_000,
    "marks": "1. " * 6_000,
    "ticks": "`a" * 10_000,
    "fences": "``` 1 " * 3_000,
    "dates": "May 1-" * 3_000,
    "urls": "http://a.b/(1" * 1_500,
    "commas": "1,234," * 3_000,
    "blanks": "1 000 " * 3_000,
    "months": "may " * 5_000 + "1",
    "ids": "_a1" * 6_000,
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_reading_takes_linear_time(name: str) -> None:
    """Counts executed lines instead of time."""
    text = HOSTILE[name]

    def steps(part: str) -> int:
        count = 0

        def trace(frame: object, event: str, argument: object) -> Any:
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            reading.Content(part)
            list(of_answer(part[:20_000], ""))
        finally:
            sys.settrace(before)
        return count

    steps("1")  # compiles the patterns
    assert steps(text) <= 3 * steps(text[: len(text) // 2]) + 2_000

"""Numbers, dates and times mean the same in every spelling, and what is scanned stands where it is said to."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from pandaeval_collector.analysis.rules.grounding._patterns import dates, minutes, readings
from pandaeval_collector.analysis.rules.grounding._scan import addresses, names, scan, without_code
from pandaeval_collector.analysis.rules.grounding._sources import leaves
from pandaeval_collector.analysis.rules.grounding._value import fold

SCRIPTS = ["０１２３４５６７８９", "٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "০১২৩৪৫৬৭৮৯"]
MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905 - words to be read
GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()  # noqa: SIM905 - words to be read
days = st.dates(min_value=date(1990, 1, 1), max_value=date(2100, 12, 31))


@given(st.integers(0, 10**9), st.integers(0, 99))
def test_numbers_read_the_same_with_any_separators(whole: int, cents: int) -> None:
    value = float(f"{whole}.{cents:02d}")
    english = f"{whole:,}.{cents:02d}"
    swapped = english.translate(str.maketrans(",.", ".,"))
    spellings = [english, swapped, english.replace(",", "'"), swapped.replace(".", " "), f"{whole}.{cents:02d}"]
    for spelling in spellings:
        numbers, step = readings(spelling)
        assert numbers[0] == value, spelling
        assert step == 0.01


@given(st.integers(1, 999), st.sampled_from([("k", 1e3), (" million", 1e6), ("万", 1e4), ("bn", 1e9)]))
def test_scales_multiply(number: int, scale: tuple[str, float]) -> None:
    assert readings(f"{number}{scale[0]}")[0] == (number * scale[1],)


@given(st.integers(10, 10**8), st.sampled_from(SCRIPTS))
def test_digits_of_all_scripts_are_digits(number: int, digits: str) -> None:
    written = str(number).translate(str.maketrans("0123456789", digits))
    assert fold(written) == str(number)


@given(days)
def test_dates_read_the_same_in_every_spelling(day: date) -> None:
    wanted = float(day.year * 10000 + day.month * 100 + day.day)
    for spelling in (
        day.isoformat(),
        f"{day.year}/{day.month}/{day.day}",
        f"{MONTHS[day.month - 1]} {day.day}, {day.year}",
        f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}",
        f"{day.day}. {GERMAN[day.month - 1]} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        [found] = scan(fold(f"on {spelling} it is"))
        assert (found.kind, found.readings) == ("date", (wanted,)), spelling
    assert wanted in dates(f"{day.day:02d}.{day.month:02d}.{day.year}")


@given(st.integers(0, 23), st.integers(0, 59))
def test_times_read_the_same_in_every_spelling(hour: int, minute: int) -> None:
    wanted = float(hour * 60 + minute)
    twelve = f"{(hour - 1) % 12 + 1}:{minute:02d} {'pm' if hour >= 12 else 'am'}"
    assert minutes(twelve) == (wanted,)
    for spelling in (f"{hour}:{minute:02d}", f"{hour:02d}:{minute:02d}:00", f"{hour}時{minute}分"):
        assert wanted in minutes(spelling), spelling


@given(st.text(max_size=300))
def test_what_is_found_stands_there(text: str) -> None:
    folded = fold(text)
    assert len(without_code(folded)) == len(folded)
    for value in (*scan(folded), *addresses(folded)):
        assert folded.startswith(value.text, value.start)
    names(folded)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9), lambda each: st.lists(each, max_size=4)
    )
)
def test_every_text_of_json_is_read(value: object) -> None:
    counts: list[int] = []
    assert all(isinstance(each, str) for each in leaves(value, counts))
    assert all(count >= 0 for count in counts)

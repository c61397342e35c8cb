"""Values that follow from known ones by time zone, calendar, scale or balance; each beside one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from pandaeval_collector.analysis.rules.grounding._patterns import readings
from pandaeval_collector.analysis.rules.grounding.grounding import grounding
from tests.unit.analysis.rules.test_grounding import call, loose, run

ZONES = {"source_timezone": "America/New_York", "target_timezone": "Asia/Tokyo", "time": "14:30"}
TOKYO = call("convert_time", ZONES, {"convertedTime": "2025-08-07T03:30:00+09:00"})
LOCAL = call("get_local_time", {"location": "32.7,-79.9"}, "Current local time: 12/27/2025, 10:17 AM")
BALANCE = call(
    "get_user",
    {"user_id": "ivan"},
    {
        "payment_methods": {
            "c_1": {"source": "certificate", "amount": 500},
            "g_1": {"source": "gift_card", "amount": 128},
        }
    },
)
PRICE = call("calculate", {"expression": "158 + 141"}, 299.0, at=2)


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("It is 3:30 AM in Tokyo, so it is 2:30 PM in New York.", []),
        ("9:00 AM in New York is 10:00 PM in Tokyo.", []),
        ("(9-11 AM) in New York is (10 PM-12 AM) in Tokyo.", []),
        ("9:05 AM in New York is 10:25 PM in Tokyo.", ["9:05 AM", "10:25 PM"]),
    ],
)
def test_a_time_of_another_zone_follows_from_the_difference_that_a_call_told(answer: str, made_up: list[str]) -> None:
    assert loose(run("How do I convert New York to Tokyo?", answer, TOKYO)) == made_up


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("So 9 AM CST is 10 AM EST.", []),
        ("It is 10:17 AM, which is 9:17 AM CST (Charleston is on ET).", []),
        ("So 9 AM CST is 11:40 AM EST.", ["11:40 AM"]),
    ],
)
def test_zones_that_a_sentence_names(answer: str, made_up: list[str]) -> None:
    assert loose(run("Post it at 9 AM CST.", answer, LOCAL)) == made_up


def test_one_zone_alone_tells_no_difference() -> None:
    assert loose(run("Is it windy at 2 PM CT?", "At 5 PM it is windy.", LOCAL)) == ["5 PM"]


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("Your certificate has $500, the flights cost $299; $201 remain on the certificate.", []),
        ("The flights cost $299. After using your certificate you will have $201 remaining.", []),
        ("The flights cost $299. After using your certificate you will have $221 remaining.", ["$221"]),
        ("The flights cost $299. That leaves $171 of your voucher.", ["$171"]),
    ],
)
def test_what_is_left_of_a_balance_that_the_sentence_names(answer: str, made_up: list[str]) -> None:
    assert loose(run("Book it.", answer, BALANCE, PRICE)) == made_up


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("Sunday (December 28th) will be sunny.", []),
        ("Sunday (December 30th) will be sunny.", ["December 30th"]),
        ("You leave on December 27th and 27th again, for 2026 too.", []),
    ],
)
def test_the_next_day_of_a_name_after_a_day_of_a_result(answer: str, made_up: list[str]) -> None:
    forecast = call("forecast", {}, "Updated: 12/24/2025. Sunday: sunny. 12/27/2025: rain.")
    assert loose(run("How is Sunday?", answer, forecast)) == made_up


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("It ends at 5:15 AM MST.", []),
        ("It ends at 5:35 AM MST.", ["5:35 AM"]),
        ("Bring ice for 4 hours, e.g. 14:30.", []),
        ("I recommend to leave at 14:30.", []),
        ('Look for the "Mobile Data" or "Cellular Data" icon.', []),
        ("Call `aes256_gcm_encrypt` for it.", []),
        ("Call job7_aa92 for it.", ["job7_aa92"]),
        ("It rises 4,300 ft and 4,300 ft more.", ["4,300", "4,300"]),
        ("See https://x.example/a%20(0,14),%20b/2?q=(1,2).", ["https://x.example/a%20(0,14),%20b/2?q=(1,2)"]),
    ],
)
def test_idioms_examples_and_proposals(answer: str, made_up: list[str]) -> None:
    assert loose(run("And?", "It lasts 13 days. " + answer, call("alerts", {}, "Until 515 AM MST, 13 days"))) == made_up


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.75 trillion", 1.75e12), ("3553.68 亿", 3553.68e8), ("1.2万亿", 1.2e12), ("5 兆", 5e12), ("2 tn", 2e12)],
)
def test_large_scales(text: str, number: float) -> None:
    assert readings(text)[0][0] == pytest.approx(number)


def test_what_a_turn_without_calls_adds_up_counts_with_its_parts() -> None:
    said = "It was $146 for each of 2, and then $184 for each."
    one = grounding(run(said, "A leg is $146 × 2 = $292, another $184 × 2 = $368.\nYou pay for your flight: $660."))
    assert one is not None
    assert (one.loose, one.checked) == ([], {"amount": 1})
    other = grounding(run(said, "A leg is $146 × 2 = $292, another $184 × 2 = $368.\nYou pay for your flight: $680."))
    assert other is not None
    assert [each.claim.value.text for each in other.loose] == ["$680"]


@pytest.mark.parametrize("name", ["pentest-pentestthinkingMCP", "model-context-sequentialthinking"])
def test_an_agent_that_only_thinks_has_looked_nothing_up(name: str) -> None:
    thought: Any = call(name, {"thought": "port 5020"}, {"ok": True})
    assert grounding(run("Plan it.", "Scan port 5020 at 18:07, it costs $45K.", thought)) is None


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("It is 61°F, 16.1°C.", []),
        ("It is 61°C.", ["61°C"]),
        ("The file has 845 GB.", ["845 GB"]),
        ("Wind 17 km/h.", ["17 km/h"]),
        ("It takes 45 hours.", []),
        ("It is 61 km away.", []),
    ],
)
def test_right_digits_in_another_unit(answer: str, wrong: list[str]) -> None:
    found = {"temperature": "61°F (16.1°C)", "size": "845 MB", "wind": "17 mph", "ride": "45 minutes"}
    assert loose(run("And?", answer, call("look", {}, found))) == wrong

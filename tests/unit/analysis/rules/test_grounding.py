"""What is grounded and what is not, kind by kind; each case has a twin that differs in one value."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.base.score import Score, Unscored
from pandaeval_collector.scoring.metric import Texts, TraceContext
from pandaeval_collector.scoring.metrics.trace.grounding import METRIC
from pandaeval_otel.model import (
    Kind,
    Message,
    Span,
    Text,
    ToolCall,
    ToolDefinition,
    ToolRequest,
    ToolResponse,
    Trace,
    Trigger,
    Turn,
)

CONTEXT = TraceContext(Texts({}, (), "none", None), 0.7)
SECOND = 10**9
START = 1_779_000_000 * SECOND  # 2026-05-17


def call(name: str, arguments: dict[str, Any], result: Any = "", at: int = 1, **facts: Any) -> ToolCall:
    made = ToolCall(name, "c", arguments, result, None, f"tool{at}", "", has_arguments=True, has_result=True)
    return replace(made, start_ns=START + at * SECOND, end_ns=START + at * SECOND + 1, **facts)


def model(span_id: str, at: int, *messages: Message, system: str = "") -> Span:
    start = START + at * SECOND
    return Span(
        "t", span_id, "root", "chat", Kind.LLM, start, start + SECOND // 2, input=messages, system=system or None
    )


def run(user: str | None, answer: str, *calls: ToolCall, system: str = "You help.", **facts: Any) -> Trace:
    """A run of one turn: the answer comes 9 seconds after the start."""
    said = (Message("user", (Text(user),)),) if user is not None else ()
    root = Span("t", "root", "", "agent", Kind.AGENT, START, START + 10 * SECOND)
    spans = (root, model("m", 0, *said, system=system))
    base = Trace("t" * 32, spans, "root", input=user, output=answer, turns=(Turn(user, answer, "root"),))
    return replace(base, tool_calls=calls, **facts)


def ask(trace: Trace) -> Any:
    return METRIC.evaluate(trace, CONTEXT)


def loose(trace: Trace) -> list[str]:
    found = ask(trace)
    assert isinstance(found, Score), found
    return [each["value"] for each in found.metadata["not_grounded"]]


KNOWN = {
    "sailing": "LH-1315",
    "departs": "13:15",
    "arrives": "2026-05-14T16:45:00",
    "date": "2026-05-14",
    "price_eur": 41.0,
    "list_price": 50,
    "seats": 187,
    "code": "YAX4DR",
    "bytes": 1_250_000,
    "contact": "desk@ferry.example",
    "page": "https://ferry.example/sailings/LH-1315",
    "ship": "Peter Wessel",
    "stops": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"],
}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("It is LH-1315.", "It is LH-2210."),
        ("It is lh 1315 (LH1315).", "It is LH1316."),
        ("It costs 41.00 EUR.", "It costs 19.90 EUR."),
        ("It costs €41.", "It costs €14."),
        ("It costs 41,00 €.", "It costs 41,90 €."),
        ("For three of you that is 123 EUR.", "For three of you that is 127 EUR."),
        ("You save 9 EUR, that is 18 %.", "You save 9 EUR, that is 28 %."),
        ("There are 187 seats.", "There are 178 seats."),
        ("The file has 1.25 MB.", "The file has 1.75 MB."),
        ("It has 1,250,000 bytes.", "It has 1,350,000 bytes."),
        ("It departs at 1:15 pm.", "It departs at 2:15 pm."),
        ("It departs at 13.15 Uhr.", "It departs at 15.13 Uhr."),
        ("It departs 午後1時15分.", "It departs 午後2時15分."),
        ("The crossing takes 3 h 30 min.", "The crossing takes 3 h 40 min."),
        ("It is on May 14, 2026.", "It is on July 24, 2026."),
        ("Am 14. Mai.", "Am 14. August."),
        ("2026年5月14日です。", "2026年8月14日です。"),
        ("It is on 14/05/2026.", "It is on 14/08/2026."),
        ("The code is YAX4DR.", "The code is YAX5DR."),
        ("°F = (°C × 1.8) + 9", "°F = (°C × 1.9) + 9"),
        ("It departs at １３:１５ on ٢٠٢٦-٠٥-١٤.", "It departs at １３:２５ on ٢٠٢٦-٠٥-١٤."),
        ("Write to Desk@Ferry.example.", "Write to help@ferry.example."),
        ("See https://ferry.example/sailings/LH-1315.", "See https://ferry.example/sailings/LH-7777."),
        ('The ship is "Peter Wessel".', 'The ship is "Peter Pan".'),
        ("It calls at 11 ports.", "It calls at 19 ports."),
    ],
)
def test_values_in_any_spelling_or_derived(right: str, wrong: str) -> None:
    searched = call("search_ferries", {}, json.dumps(KNOWN))
    assert loose(run("The ferry to Hirtshals, for 3 people?", right, searched)) == []
    assert len(loose(run("The ferry to Hirtshals, for 3 people?", wrong, searched))) == 1


@pytest.mark.parametrize(
    "user", ["Order A-4471, please, for fifteen guests.", "Bestellung a4471 für fünfzehn Gäste.", "订单 A-4471, 十五位"]
)
def test_what_the_user_said_is_known_in_words_too(user: str) -> None:
    found = call("find_order", {}, "found")
    assert loose(run(user, "Order A-4471 is for 15 guests.", found)) == []
    assert loose(run(user, "Order A-4471 is for 16 guests.", found)) == ["16"]


def test_instructions_and_definitions_are_known() -> None:
    asked = call("find_order", {}, "late")
    answer = "You get 35 EUR by rule R-770."
    assert loose(run("My order is late", answer, asked, system="Rule R-770: 35 EUR for a late order.")) == []
    defined = (ToolDefinition("pay", "Pays 35 EUR by rule R-770"),)
    assert loose(run("My order is late", answer, asked, tools=defined)) == []
    assert loose(run("My order is late", answer, asked)) == ["35 EUR", "R-770"]


def test_a_single_made_up_price_fails_whatever_the_score() -> None:
    rows = [{"id": f"LH-{number}", "eur": number} for number in range(2001, 2020)]
    answer = " ".join(f"{row['id']} costs {row['eur']} EUR." for row in rows) + " The suite costs $49.99."
    found = ask(run("All prices?", answer, call("search", {}, rows)))
    assert isinstance(found, Score)
    assert found.value > 0.9
    assert found.failed
    assert found.label == "made_up_value"
    assert found.reason.startswith("'$49.99' stands in no result and was not said by the user")
    [described] = found.metadata["not_grounded"]
    assert (described["span_id"], described["kind"]) == ("root", "amount")
    assert "The suite costs" in described["text"]
    assert found.span_ids == ("root",)


def test_made_up_numbers_fail_below_the_threshold_only() -> None:
    seats = call("seats", {}, {"free": [21, 34, 55]})
    assert not ask(run("Seats?", "Free: 21, 34, 55 and 77.", seats)).failed
    found = ask(run("Seats?", "Free: 21, 77 and 78.", seats))
    assert found.value < 0.7
    assert found.reason.endswith("2 of 3 values are not grounded")


def test_totals_of_what_is_listed_are_derived() -> None:
    prices = call("prices", {}, {"a": 483, "b": 688, "c": 164})
    assert loose(run("Total?", "$483 + $688 + $164 = $1,335, for two that is $2,670.", prices)) == []
    assert loose(run("Total?", "$483 + $688 + $164 = $1,345.", prices)) == ["$1,345"]


@pytest.mark.parametrize("answer", ["It is on 2026-09-09.", "It departs at 9:07 am."])
def test_a_single_made_up_date_or_time_fails(answer: str) -> None:
    rows = [f"LH-{number}" for number in range(2001, 2020)]
    assert ask(run("All?", " ".join(rows) + f". {answer}", call("search", {}, rows))).failed


class TestArithmetic:
    PRICES = call("prices", {}, [{"id": "A", "fare": 355, "bag": 31}, {"id": "B", "fare": 474, "bag": 40}])

    def test_of_one_list_or_object(self) -> None:
        assert loose(run("Total?", "Both fares are $829.", self.PRICES)) == []
        assert loose(run("Total?", "A with a bag is $386.", self.PRICES)) == []
        assert loose(run("Total?", "It is $395.", self.PRICES)) == ["$395"], "the fare of one with the bag of the other"

    def test_of_one_sentence_of_the_answer(self) -> None:
        far = [call("fare", {}, {"fare": 355}), call("fare", {}, {"fare": 474}, at=2)]
        assert loose(run("Total?", "355 + 474 = $829.", *far)) == []
        assert loose(run("Total?", "It is $829.", *far)) == ["$829"]

    def test_with_what_the_user_said(self) -> None:
        assert loose(run("For 3 of us?", "That is $1,065.", call("fare", {}, {"fare": 355}))) == []
        assert loose(run("For us?", "That is $1,065.", call("fare", {}, {"fare": 355, "seats": 90}))) == ["$1,065"]


@pytest.mark.parametrize(("night", "right"), [("2026-05-14", True), ("2026-07-24", False)])
def test_an_address_is_rebuilt_of_what_is_known(night: str, right: bool) -> None:
    url = f"https://www.ferry.example/s/Hirts%20hals?from={night}&price=150"
    found = loose(run("From 14 May 2026, at most $150", f"See {url}", call("search", {}, "blocked by ferry.example")))
    assert found == ([] if right else [url])


def test_dates_by_arithmetic() -> None:
    booked = call("book", {}, {"start": "2026-05-20"})
    assert loose(run("Three days, 3 please.", "Until 23 May 2026.", booked)) == []
    assert loose(run("Three days, 3 please.", "Until 23 July 2026.", booked)) == ["23 July 2026"]
    assert loose(run("Tomorrow?", "Tomorrow is 18 May 2026.", booked)) == [], "from the day of the run"


class TestCalls:
    def test_arguments_of_what_changes_something_have_to_be_known_by_then(self) -> None:
        search = call("search_ferries", {}, {"id": "LH-1315"}, at=1)
        book = call("book_ferry", {"sailing_id": "LH-1315"}, "ok", at=2)
        assert loose(run("Book it", "Done.", search, book)) == []
        early = call("book_ferry", {"sailing_id": "LH-1315"}, "ok", at=1)
        late = call("search_ferries", {}, {"id": "LH-1315"}, at=2)
        found = ask(run("Book it", "Done.", early, late))
        assert found.metadata["not_grounded"][0]["argument"] == "sailing_id"
        assert found.reason.startswith("'LH-1315' (sailing_id) stands in no result")

    def test_looking_things_up_may_be_tried(self) -> None:
        assert ask(run("Book it", "Done.", call("get_ferry", {"sailing_id": "LH-1315"}, "none"))) is None

    @pytest.mark.parametrize(
        "arguments",
        [{"limit": 50}, {"timeout": 3000}, {"request_id": "a7f3-99"}, {"content": "x = 4711"}, {"text": "12\n34"}],
    )
    def test_settings_and_what_is_written_are_no_facts(self, arguments: dict[str, Any]) -> None:
        assert ask(run("Write it", "Done.", call("create_file", arguments, "ok"))) is None

    def test_an_answer_that_says_otherwise_contradicts(self) -> None:
        book = call("book_ferry", {"sailing_id": "LH-1315", "passengers": 1}, {"ref": "FJ-88213"})
        user = "Book sailing LH-0742 for 3 passengers, or LH-1315 for 1."
        found = ask(run(user, "Sailing LH-0742 is booked for 3 passengers: FJ-88213.", book))
        assert found.label == "contradicts_calls"
        assert {each["but"] for each in found.metadata["not_grounded"] if "but" in each} == {
            "book_ferry was called with sailing_id LH-1315",
            "book_ferry was called with passengers 1",
        }
        assert loose(run(user, "LH-0742 is full; I booked LH-1315 for 1 passenger: FJ-88213.", book)) == []

    def test_counts_may_be_spelled_out_and_calls_add_up(self) -> None:
        user = "Book for 3 passengers."
        assert ask(run(user, "Booked for 3 passengers.", call("book_ferry", {"passengers": "three"}))) is None
        two = call("book_ferry", {"passengers": 2}, at=1)
        one = call("book_ferry", {"passengers": 1}, at=2)
        assert ask(run(user, "Booked for 3 passengers.", two, one)) is None
        assert loose(run(user, "Booked for 4 passengers.", two, one)) == ["4 passengers"]

    def test_a_call_that_failed_contradicts_nothing(self) -> None:
        failed = call("book_ferry", {"passengers": 2}, error="timeout")
        assert ask(run("Book for 3 passengers.", "Not booked for 3 passengers.", failed)) is None


class TestHidden:
    def test_without_results_what_is_not_known_says_nothing(self) -> None:
        blind = call("search_ferries", {}, has_result=False)
        found = ask(run("Ferry on 2026-05-14?", "LH-1315 for 41 EUR.", blind))
        assert isinstance(found, Unscored)
        assert (found.why, found.coverage) == ("insufficient_evidence", 0.0)
        assert found.reason.endswith("where 2 values of 2 came from is not known ('LH-1315', '41 EUR')")
        some = ask(run("Is it LH-1315?", "LH-1315 is 41 EUR.", blind))
        assert (some.value, some.coverage) == (1.0, 0.5)
        assert (some.metadata["not_determinable"], some.metadata["open"]) == (1, ["41 EUR"])
        assert some.reason.endswith("; 1 value not checked: results of tools were not captured")
        less = ask(run("Is it LH-1315?", "LH-1315 is 41 EUR, 187 seats.", blind))
        assert (less.why, less.coverage) == ("insufficient_evidence", 1 / 3)

    def test_contradictions_show_without_results(self) -> None:
        blind = call("book_ferry", {"passengers": 2}, has_result=False)
        assert loose(run("Book for 3 passengers.", "Booked for 3 passengers.", blind)) == ["3 passengers"]

    def test_the_middle_of_a_session_without_its_beginning(self) -> None:
        found = ask(run("Yes", "FJ-9921 it is.", call("search", {}, "x"), system="", session_id="s"))
        assert isinstance(found, Unscored)
        assert isinstance(ask(run("Yes", "FJ-9921 it is.", call("search", {}, "x"), session_id="s")), Score)

    def test_history_counts_and_own_words_do_not(self) -> None:
        before = (
            Message("user", (Text("Which?"),)),
            Message("assistant", (ToolRequest("search", {}),)),
            Message("tool", (ToolResponse({"id": "LH-1315"}),)),
            Message("user", (Text("Book it"),)),
        )
        trace = run("Book it", "Your booking LH-1315 is paid.", session_id="s")
        whole = replace(trace, spans=(trace.spans[0], model("m", 0, *before)))
        assert loose(whole) == []
        own = (*before[3:], Message("assistant", (Text("I take LH-1315"),)), Message("tool", (ToolResponse("ok"),)))
        assert loose(replace(trace, spans=(trace.spans[0], model("m", 0, *own, system="x")))) == ["LH-1315"]


class TestNotApplicable:
    def test_nothing_specific_or_nothing_to_be_grounded_in(self) -> None:
        assert ask(run("Hello", "Hello! How can I help?", call("search", {}, "x"))) is None
        assert ask(run("When was it built?", "In 1889; it is 330 m high and cost 41 EUR.")) is None

    def test_without_a_call_only_what_claims_to_be_of_this_case_counts(self) -> None:
        assert ask(run("Ideas?", "The A1B2C3 trick costs 20 EUR; start at 8:15.")) is None
        assert ask(run("Ideas?", "Start at 8:15.", call("think", {"thought": "hm"}, "ok"))) is None
        assert loose(run("Thanks!", "Your booking XKJ482 costs 41 EUR.")) == ["XKJ482", "41 EUR"]
        assert loose(run("Is my booking XKJ482 paid?", "Your booking XKJ482 is paid.")) == []

    @pytest.mark.parametrize(
        "text",
        [
            "mid-50s, low-70s and 30s-40s",
            "SHA-256, ERC-20 and ISO-8601",
            "US-50, UT-24 and I-495",
            "1024x1024",
            "1-to-1",
            "SPF15",
            "see https://status.example/",
            "![x](data:image/png;base64,iVBORw0KGgo4711AAC)",
            'see e.g. "Miami Today"',
        ],
    )
    def test_idioms_are_no_values(self, text: str) -> None:
        assert ask(run("Tell me", text, call("search", {}, "x"))) is None

    def test_lists_code_and_single_digits_are_nothing_specific(self) -> None:
        answer = "1. first\n2. second\n12. twelfth: 3 of them, see COVID-19, 24/7.\n```\nx = 4711\n```"
        assert ask(run("Explain", answer, call("search", {}, "x"))) is None

    def test_a_trace_that_was_cut_off_is_not_judged(self) -> None:
        cut = run("?", "LH-1315", call("search", {}, "x"), trigger=Trigger.SPAN_LIMIT, complete=False)
        assert ask(cut).why == "incomplete_trace"


def test_documents_are_sources() -> None:
    trace = run("Policy?", "It is 45 EUR by rule R-770.")
    found = Span("t", "r", "root", "search", Kind.RETRIEVAL, START, START + 1, documents=("Rule R-770: 45 EUR",))
    assert loose(replace(trace, spans=(*trace.spans, found))) == []
    assert loose(replace(trace, spans=(*trace.spans, found.but(documents=("Rule R-771: 54 EUR",))))) == [
        "45 EUR",
        "R-770",
    ]


def test_long_runs_are_capped_and_said_to_be() -> None:
    many = call("search", {}, ["word " * 50_000, "more " * 50_000])
    found = ask(run("?", "It is LH-1315, not LH-2000.", many, call("search", {}, "LH-1315", at=2)))
    assert found.metadata["note"] == "long run: not all of it was looked at"
    values = " ".join(f"ID-{number}" for number in range(1000, 1400))
    found = ask(run("?", values, call("search", {}, values)))
    assert found.metadata["values_checked"] == 300

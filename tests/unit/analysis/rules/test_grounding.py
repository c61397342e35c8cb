"""Grounded, suspect, open and fabricated values."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pandaeval_collector.analysis.rules.grounding.before import before, pack
from pandaeval_collector.analysis.rules.grounding.values import scan
from pandaeval_collector.base.score import Score, Unscored, Why
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

SECOND = 10**9
START = 1_779_000_000 * SECOND  # 2026-05-17
TOLD = "You are the desk of a ferry line."


def call(name: str, arguments: dict[str, Any], result: Any = "", at: int = 1, **facts: Any) -> ToolCall:
    made = ToolCall(name, "c", arguments, result, None, f"tool{at}", "", has_arguments=True, has_result=True)
    return replace(made, start_ns=START + at * SECOND, end_ns=START + at * SECOND + 1, **facts)


def model(span_id: str, at: int, *messages: Message, system: str = TOLD, says: str = "") -> Span:
    start, output = START + at * SECOND, (Message("assistant", (Text(says),)),) if says else None
    given = {"input": messages, "output": output, "system": system or None}
    return Span("t", span_id, "root", "chat", Kind.LLM, start, start + SECOND // 2, **given)


def run(user: str | None, answer: str, *calls: ToolCall, system: str = TOLD, **facts: Any) -> Trace:
    """Return a run of one turn with the answer after 9 seconds."""
    messages = (Message("user", (Text(user),)),) if user is not None else ()
    root = Span("t", "root", "", "agent", Kind.AGENT, START, START + 10 * SECOND)
    spans = (root, model("m", 0, *messages, system=system))
    base = Trace("t" * 32, spans, "root", input=user, output=answer, turns=(Turn(user, answer, "root"),))
    return replace(base, tool_calls=calls, **facts)


def ask(trace: Trace, *earlier: Trace) -> Any:
    known = before([pack(each) for each in earlier], frozenset()) if earlier else None
    return METRIC.evaluate(trace, TraceContext(Texts({}, (), "none", None), 0.0, before=known))


def outcome(trace: Trace, *earlier: Trace) -> str:
    found = ask(trace, *earlier)
    if found is None:
        return "no claim"
    if found.metadata["not_grounded"]:
        assert found.failed
        return "fails"
    if found.metadata.get("suspect"):
        assert not found.failed
        return "suspect"
    if found.metadata.get("open"):
        return "open"
    return "judge" if found.metadata.get("for_judge") else "grounded"


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
    "size": "1250 MB",
    "checkout": 1100,
    "air": "61°F",
    "contact": "desk@ferry.example",
    "page": "https://ferry.example/sailings/LH-1315",
    "card": "credit_card_4421486",
    "stops": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"],
}
USER = "The ferry to Hirtshals, for three people? I stay for 5 days from May 20 to 24, order A-4471, at most $150."


@pytest.mark.parametrize(
    ("right", "wrong", "worst"),
    [
        ("It is LH-1315.", "It is LH-2210.", "fails"),
        ("It is lh 1315 (LH1315).", "It is LH1316.", "fails"),
        ("The code is YAX4DR.", "The code is YAX5DR.", "fails"),
        ("It costs 41.00 EUR.", "It costs 19.90 EUR.", "judge"),
        ("It costs €41.", "It costs €14.", "judge"),
        ("It costs 41,00 €.", "It costs 41,90 €.", "judge"),
        ("It departs at 1:15 pm.", "It departs at 2:15 pm.", "fails"),
        ("It departs at 13.15 Uhr.", "It departs at 15.13 Uhr.", "fails"),
        ("It departs 午後1時15分.", "It departs 午後2時15分.", "fails"),
        ("Leave the cabin by 11:00.", "Leave the cabin by 10:00.", "judge"),
        ("It is on May 14, 2026.", "It is on July 24, 2026.", "judge"),
        ("Am 14. Mai.", "Am 14. August.", "judge"),
        ("2026年5月14日です。", "2026年8月14日です。", "judge"),
        ("It is on 14/05/2026.", "It is on 14/08/2026.", "judge"),
        ("It departs at １３:１５ on ٢٠٢٦-٠٥-١٤.", "It departs at １３:１５ on ٢٠٢٦-٠٨-١٤.", "fails"),
        ("Write to Desk@Ferry.example.", "Write to help@ferry.example.", "judge"),
        ("See https://ferry.example/sailings/LH-1315.", "See https://ferry.example/sailings/LH-7777.", "judge"),
        ("A-4471 is yours.", "A-4472 is yours.", "fails"),
    ],
)
def test_right_values_are_grounded_in_any_spelling_and_wrong_values_are_caught(
    right: str, wrong: str, worst: str
) -> None:
    searched = call("search_ferries", {}, json.dumps(KNOWN))
    assert outcome(run(USER, right, searched)) == "grounded"
    assert outcome(run(USER, wrong, searched)) == worst


PRICES = [{"id": "A", "fare": 355, "tax": 31}, {"id": "B", "fare": 474, "tax": 40}]
CABINS = {"flight": "HAT-072", "prices": {"economy": 131, "business": 188}, "seats": {"economy": 4}}
BILL = {"subtotal": 412.5, "tax": 37.13, "shipping_fee": 61.2, "handling_fee": 18.4}
SHOES = [
    {"name": "Trail Runner", "price": 129.9, "stock_since": "2026-03-04"},
    {"name": "Road Racer", "price": 154.5, "stock_since": "2026-04-19"},
]
HOURS = {"open": "09:00", "close": "17:00"}
LEGS = [{"new": 1859, "old": 140}, {"new": 1679, "old": 101}]
TIMES = {"start": 1764428546123, "length": 1764428546456}


@pytest.mark.parametrize(
    ("had", "user", "answer", "worst"),
    [
        # The results have a single value of that kind, of that label, or of that owner.
        ({"price": 72}, "?", "It costs $72.", "grounded"),
        ({"price": 72}, "?", "It costs $49.99.", "fails"),
        ({"temp": "54 °F"}, "?", "The temp is 45 °F.", "fails"),
        (BILL, "?", "Subtotal: $412.50, tax: $39.13.", "fails"),
        (SHOES, "?", "The Road Racer costs $99.95.", "fails"),
        (SHOES, "?", "Price: $99.95.", "suspect"),
        (CABINS, "?", "Economy: $127.55.", "fails"),
        (HOURS, "?", "It is open from 9 to 17.", "grounded"),
        (HOURS, "?", "It is open from 9 to 19.", "fails"),
        ({"open": "09:00", "close": "17:30"}, "?", "Ouvert de 9 h à 17 h 30.", "grounded"),
        # A URL or an address names its own target.
        ({"image": "https://a.example/p/1/cat.png"}, "?", "Image: https://a.example/p/2/dog.png", "judge"),
        ({"email": "ann@a.example"}, "?", "Email: bob@a.example", "judge"),
        ({"dob": "1974-08-15", "created": "2024-05-04"}, "?", "DOB: 1974-01-23", "fails"),
        # One digit is dropped, doubled or swapped.
        ({"volume": "139,108,000", "low": "7,204,113"}, "?", "There were 13,910,800 of them.", "fails"),
        ({"a": "$4,482.10", "b": "$9,120.00"}, "?", "You paid $4,842.10.", "fails"),
        ([{"item": "8302289002"}, {"item": "7195021808"}], "?", "It is item 802289002.", "fails"),
        # The value may come from arithmetic, a rule, a question or another time zone.
        ({"fare": 355}, "For 3 of us?", "That is $1,065.", "judge"),
        ({"price": 72}, "?", "That is $60 less 20 %, so it costs $48.", "judge"),
        (PRICES, "?", "Both fares are $829.", "judge"),
        ({"old": "$260.56", "list": "$239.99"}, "?", "$236.57 - $260.56 = -$23.99", "judge"),
        (LEGS, "For both of us?", "The difference for both of you is $6,594.", "judge"),
        ({"price": 299}, "I have a $500 certificate.", "You have $201 left of your certificate.", "judge"),
        ({"price": 299}, "?", "Each bag costs $50.", "judge"),
        ({"price": 299}, "?", "Do you want to pay $50?", "judge"),
        ({"price": 299}, "?", "It costs about $310.", "judge"),
        ({"price": 41}, "?", "The price difference is $12.", "judge"),
        ({"at": "14:30 EST"}, "?", "At 19:30 GMT.", "judge"),
        ({"volume": "68,642,255,170.75 USD"}, "?", "The volume is $68.6 billion.", "judge"),
        (TIMES, "?", "The sum is 3528857092579.", "judge"),
        # The results have the value in another form.
        ({"text": "12.2万亿 CNY"}, "?", "It is ¥12,200,000,000,000.", "grounded"),
        ({"height": "1.7m"}, "?", "The height is 1.7 meters.", "judge"),
        ({"score": 8}, "?", "The score is 9.4/10.", "no claim"),
    ],
)
def test_values_are_compared_with_the_tool_results(had: Any, user: str, answer: str, worst: str) -> None:
    assert outcome(run(user, answer, call("look", {}, had))) == worst


@pytest.mark.parametrize("answer", ["It takes 1 hour and 35 minutes.", "It takes 1 hr 35 mins."])
def test_an_iso_duration_in_a_result_grounds_a_duration(answer: str) -> None:
    assert outcome(run("How long is the trip?", answer, call("lookup", {}, {"duration": "PT1H35M"}))) == "grounded"


def test_a_number_in_calculation_arguments_is_grounded() -> None:
    calculated = call("calculate", {"expression": "500 + 250 + 198 + 129"}, "1077.0")
    assert outcome(run("?", "You get $1,077, of which $198 is for the bag.", calculated)) == "grounded"


@pytest.mark.parametrize(
    "text",
    [
        "mid-50s, low-70s and 30s-40s",
        "SHA-256, ERC-20, ISO-8601, uint256 and COVID-19",
        "US-50, UT-24 and I-495; 1024x1024; 1-to-1; 24/7",
        "see https://status.example/",
        "![x](data:image/png;base64,iVBORw0KGgo4711AAC)",
        "1. first\n2. second\n12. twelfth: 3 of them",
        "```\nx = 'LH-4711'\n``` and `LH-4711`",
        "for example at 14:30",
        "Run head -n 10 --port 8080",
        "I wrote report_2044.pdf.",
        "I recommend to leave at 14:30.",
        "# 12 ways",
        "Hello! How can I help?",
        "There are 17 seats on page 77, for 30 to 45 people.",
    ],
)
def test_text_without_checkable_values_is_no_claim(text: str) -> None:
    assert outcome(run("Tell me", text, call("search", {}, "LH-1315 at 13:15 on 2026-05-14 for $41"))) == "no claim"


@pytest.mark.parametrize(
    "text", ["It costs about $77.", "It leaves at 14:30.", "It takes 77 minutes.", "It has 1,785 seats."]
)
def test_an_answer_with_only_values_for_the_judge_gets_no_score(text: str) -> None:
    found = ask(run("Tell me", text, call("search", {}, "on 2026-05-14 for $41 or $45")))
    assert (type(found), found.why) == (Unscored, Why.INSUFFICIENT_EVIDENCE)
    assert found.reason == "code cannot find the source of 1 value; only a judge (correctness) can check this"
    assert (found.metadata["values_checked"], len(found.metadata["for_judge"])) == (0, 1)


def test_a_suspect_value_neither_fails_nor_lowers_the_score() -> None:
    found = ask(run("?", "Price: $99.95.", call("look", {}, SHOES)))
    assert (found.failed, found.value, found.metadata["not_grounded"]) == (False, 1.0, [])
    assert "only suspicious" in found.reason
    assert METRIC.threshold == 0.0


def test_an_identifier_of_an_unseen_form_goes_to_the_judge_unless_it_is_the_users() -> None:
    searched = call("search", {}, "LH-1315")
    assert outcome(run("?", "It runs on the QX77812 chip.", searched)) == "judge"
    assert outcome(run("?", "Your order is QX77812.", searched)) == "fails"


def test_a_fabricated_value_names_the_first_model_call_that_stated_it() -> None:
    trace = run("Which?", "The cheapest is LH-1315. The other is LH-2210.", call("search", {}, "LH-1315"))
    first, again = model("m2", 5, says="The other is LH-2210."), model("m3", 7, says="As I said, LH-2210.")
    found = ask(replace(trace, spans=(*trace.spans, first, again)))
    assert (found.failed, found.label, found.value, found.span_ids) == (True, "made_up_value", 0.5, ("m2",))
    assert found.reason.startswith("'LH-2210' does not appear in any tool result or user message")
    [named] = found.metadata["not_grounded"]
    assert (named["value"], named["kind"], named["span_id"]) == ("LH-2210", "identifier", "m2")
    assert "The other is" in named["text"]


class TestEvidence:
    def test_instructions_definitions_and_documents_ground_values(self) -> None:
        asked, answer = call("find_order", {}, "late"), "You get 35 EUR by rule R-7700."
        assert outcome(run("Late", answer, asked, system="Rule R-7700: 35 EUR for a late order.")) == "grounded"
        assert outcome(run("Late", answer, asked, tools=(ToolDefinition("pay", "35 EUR, rule R-7700"),))) == "grounded"
        bare = run("Late", answer)
        found = Span("t", "r", "root", "s", Kind.RETRIEVAL, START, START + 1, documents=("Rule R-7700: 35 EUR",))
        assert outcome(replace(bare, spans=(*bare.spans, found))) == "grounded"
        other = found.but(documents=("Rule R-7701: 54 EUR",))
        assert outcome(replace(bare, spans=(*bare.spans, other))) == "fails"

    def test_an_answer_that_contradicts_the_only_price_of_a_document_fails(self) -> None:
        bare = run("Fee?", "A late return costs 53.00 EUR a day.")
        found = Span("t", "r", "root", "s", Kind.RETRIEVAL, START, START + 1, documents=("Late return: 35.00 EUR.",))
        assert outcome(replace(bare, spans=(*bare.spans, found))) == "fails"

    def test_arguments_of_changing_calls_must_be_grounded(self) -> None:
        search = call("search_ferries", {}, {"id": "LH-1315"}, at=1)
        assert outcome(run("Book it", "Done.", search, call("book_ferry", {"id": "LH-1315"}, "ok", at=2))) == "grounded"
        found = ask(run("Book it", "Done.", search, call("book_ferry", {"id": "LH-2210"}, "ok", at=2)))
        assert found.metadata["not_grounded"][0]["argument"] == "id"
        assert found.reason.startswith("'LH-2210' (argument id) does not appear in any tool result")

    def test_an_identifier_a_tool_returns_is_grounded_and_a_refused_one_goes_to_the_judge(self) -> None:
        search = call("search_ferries", {}, {"id": "LH-1315"}, at=1)
        taken = call("book_ferry", {"sailing_id": "KO-7731"}, {"ref": "sailing KO-7731"}, at=2)
        assert outcome(run("Book it.", "Done.", search, taken)) == "grounded"
        refused = replace(taken, result="no such sailing", error="404")
        assert outcome(run("Book it.", "Done.", search, refused)) == "judge"

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("get_ferry", {"id": "LH-1315"}),
            ("create_file", {"limit": 50, "content": "x = LH-4711", "file_name": "LH-4711"}),
            ("create_note", {"note": "about LH-4711"}),
            ("create_file", {"request_id": "a7f3-99"}),
        ],
    )
    def test_arguments_of_reading_calls_and_agent_chosen_arguments_are_no_claims(
        self, tool: str, arguments: dict[str, Any]
    ) -> None:
        assert outcome(run("Go", "Done.", call(tool, arguments, "ok"))) == "no claim"

    def test_a_value_fabricated_in_an_earlier_trace_stays_fabricated(self) -> None:
        first = run("Which?", "LH-2210.", call("search", {}, "LH-1315"), session_id="s")
        assert outcome(replace(run("And?", "Your booking LH-2210 is paid."), session_id="s"), first) == "fails"

    def test_tool_results_in_the_message_history_ground_values(self) -> None:
        shown = (
            Message("user", (Text("Which?"),)),
            Message("assistant", (ToolRequest("search", {}),)),
            Message("tool", (ToolResponse({"id": "LH-1315"}),)),
            Message("user", (Text("Book it"),)),
        )
        trace = run("Book it", "Your booking LH-1315 is paid.", session_id="s")
        assert outcome(replace(trace, spans=(trace.spans[0], model("m", 0, *shown)))) == "grounded"
        other = (shown[0], shown[1], Message("tool", (ToolResponse({"id": "LH-1316"}),)), shown[3])
        assert outcome(replace(trace, spans=(trace.spans[0], model("m", 0, *other)))) == "fails"
        words = (shown[0], Message("assistant", (Text("The LH-1315."),)), shown[3])  # many clients send no results
        assert outcome(replace(trace, spans=(trace.spans[0], model("m", 0, *words)))) == "open"
        greeted = (Message("assistant", (Text("Hello!"),)), Message("user", (Text("Book it"),)))
        assert outcome(replace(trace, spans=(trace.spans[0], model("m", 0, *greeted)))) == "fails"


class TestContradictions:
    def test_an_answer_that_contradicts_call_arguments_fails(self) -> None:
        book = call("book_ferry", {"sailing_id": "LH-1315", "passengers": 1}, {"ref": "FJ-88213"})
        user = "Book sailing LH-0742 for 3 passengers, or LH-1315 for 1."
        found = ask(run(user, "Sailing LH-0742 is booked for 3 passengers: FJ-88213.", book))
        assert found.label == "contradicts_calls"
        assert [each["but"] for each in found.metadata["not_grounded"]] == ["the call used sailing_id LH-1315"]
        assert outcome(run(user, "LH-0742 is full; I booked LH-1315 for 1 passenger: FJ-88213.", book)) == "grounded"
        failed = call("book_ferry", {"sailing_id": "LH-1315"}, error="timeout")
        assert outcome(run(user, "I did not book sailing LH-0742.", failed)) == "grounded"

    def test_contradictions_are_found_without_captured_results(self) -> None:
        blind = call("book_ferry", {"sailing_id": "LH-1315"}, has_result=False)
        assert outcome(run("Book sailing LH-0742.", "Sailing LH-0742 is booked.", blind)) == "fails"


class TestWithoutCalls:
    def test_general_knowledge_is_no_claim(self) -> None:
        assert outcome(run("When was it built?", "In 1889; it is 330 m high and cost 41 EUR.")) == "no claim"
        thought = call("think", {"thought": "hm"}, "ok")
        assert outcome(run("Ideas?", "The A1B2C3 trick costs 20 EUR; start at 8:15.", thought)) == "no claim"

    def test_values_of_the_users_own_booking_are_claims(self) -> None:
        assert outcome(run("Thanks!", "Your booking XKJ482 costs 41 EUR.")) == "fails"
        assert outcome(run("Is my booking XKJ482 paid?", "Your booking XKJ482 is paid.")) == "grounded"

    def test_all_values_are_claims_after_calls_in_earlier_traces(self) -> None:
        first = run("Flights?", "There is one.", call("search", {}, CABINS), session_id="s")
        later = replace(run("Which one?", "Flight HAT-079 costs $150."), session_id="s")
        assert outcome(later, first) == "fails"
        assert outcome(replace(later, output="HAT-072: $131", turns=(Turn("?", "HAT-072: $131"),)), first) == "grounded"


class TestOpen:
    def test_values_are_open_if_results_were_not_captured(self) -> None:
        blind = call("search_ferries", {}, has_result=False)
        found = ask(run("Ferry on 2026-05-14?", "LH-1315 for 41 EUR.", blind))
        assert isinstance(found, Unscored)
        assert (found.why, found.coverage) == (Why.INSUFFICIENT_EVIDENCE, 0.0)
        assert found.reason.endswith("the source of 2 of 2 values is unknown ('LH-1315', '41 EUR')")
        some = ask(run("Is it LH-1315?", "LH-1315 is 41 EUR.", blind))
        assert (some.value, some.coverage, some.metadata["open"]) == (1.0, 0.5, ["41 EUR"])
        assert some.reason.endswith("; 1 value not checked: tool results were not captured")
        assert ask(run("Is it LH-1315?", "LH-1315 is 41 EUR, at 13:15.", blind)).coverage == 1 / 3

    @pytest.mark.parametrize(
        ("result", "cut"),
        [
            ('{"sailings": [{"id": "KO-77...', True),
            ('{"sailings": [{"id": "KO-77', True),
            ("KO-7731 departs at 13:15 and …", True),
            ("KO-7731 departs [output truncated, 812 more characters]", True),
            ('{"sailings": [{"id": "KO-7731"}]}', False),
            ("[KO-7731", False),
            ({"ref": "KO-7731", "note": "and so on..."}, False),
        ],
    )
    def test_values_are_open_if_a_result_is_truncated(self, result: Any, cut: bool) -> None:
        assert outcome(run("?", "Your booking is FJ-88214.", call("search", {}, result))) == (
            "open" if cut else "fails"
        )

    def test_values_are_open_if_the_beginning_of_the_session_is_missing(self) -> None:
        searched = call("search", {}, "FJ-9920")
        assert isinstance(ask(run("Yes", "FJ-9921 it is.", searched, system="", session_id="s")), Unscored)
        assert outcome(run("Yes", "FJ-9921 it is.", searched, session_id="s")) == "fails"
        assert outcome(run("Yes", "FJ-9921 it is.", searched, continues="resp_1")) == "open"


class TestLimits:
    def test_an_incomplete_trace_is_not_scored(self) -> None:
        cut = run("?", "LH-1315", call("search", {}, "x"), trigger=Trigger.SPAN_LIMIT, complete=False)
        assert ask(cut).why == Why.INCOMPLETE_TRACE

    def test_long_runs_are_checked_in_part_and_the_score_notes_it(self) -> None:
        many = call("search", {}, ["word " * 50_000, "more " * 50_000])
        found = ask(run("?", "It is LH-1315, not LH-2000.", call("search", {}, "LH-1315", at=0), many))
        assert found.metadata["note"] == "long run: only a part of it was checked"
        values = " ".join(f"FR-{number}" for number in range(1000, 1400))
        found = ask(run("?", values, call("search", {}, values)))
        assert (found.metadata["values_checked"], found.metadata["note"]) == (
            300,
            "only the first 300 values were checked",
        )


def test_scores_that_earlier_traces_may_change_are_unsettled() -> None:
    unsettled = METRIC.reads and METRIC.reads.unsettled
    assert unsettled is not None
    loose = run("?", "It is LH-2210.", call("search", {}, "LH-1315"))
    for trace, expected in ((loose, True), (run("?", "LH-1315", call("search", {}, "LH-1315")), False)):
        assert unsettled(trace, ask(trace)) is expected
    assert unsettled(run("?", "Start at 8:15."), None)
    assert not unsettled(run("?", "Hello."), None)
    assert isinstance(ask(loose), Score)


@pytest.mark.parametrize("text", ["Room 53 May be free.", "the 99th of May", "a 75 Mars bar"])
def test_an_invalid_day_before_a_month_name_is_no_date(text: str) -> None:
    assert not any(value.kind == "date" for value in scan(text))


def test_an_identifier_for_work_that_no_call_did_fails() -> None:
    tools = (ToolDefinition("open_claim", "Opens a claim"),)
    answer = "I have created claim CLM-77120 for the broken window."
    assert outcome(run("A window broke.", answer, tools=tools)) == "fails"
    assert outcome(run("A window broke.", answer)) == "no claim"
    assert outcome(run("What is RFC-9110?", "RFC-9110 has been completed by RFC-9111.", tools=tools)) == "no claim"

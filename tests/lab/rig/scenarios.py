"""The scripted sessions of users and model.

``SCENARIOS``: for golden captures. ``SCRIPTS``: for the model server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.script import Call, Dialogue, Exchange, Fault, Reply, Script, Served

REJECTED = Fault(400, "The request was rejected: a message is too long for this model.", "invalid_request_error")


@dataclass(frozen=True)
class Scenario:
    """A session with one desk.

    ``raises``: the run ends with an exception. ``failing_tools``: a tool raises.
    """

    desk: str
    session: str
    dialogue: Dialogue
    streamed: bool = False
    raises: bool = False
    failing_tools: bool = False

    @property
    def turns(self) -> list[str]:
        return [exchange.user for exchange in self.dialogue.exchanges]


def call(name: str, **arguments: Any) -> Call:
    return Call(name, arguments)


def step(*calls: Call, text: str = "", why: str = "") -> Reply:
    return Reply(text, calls, why)


def ask(user: str, *replies: Reply | Fault | str) -> Exchange:
    """Return an exchange; a string is a final answer."""
    return Exchange(user, tuple(Reply(r) if isinstance(r, str) else r for r in replies))


def talk(desk: str, session: str, *exchanges: Exchange, **flags: bool) -> Scenario:
    """Return a scenario of exchanges."""
    return Scenario(desk, session, Dialogue(exchanges), **flags)


KETTLE = ask(
    "My copper kettle from order A-1042 leaks. Is another copper kettle in stock, and can I return this one?",
    step(
        call("find_order", order_id="A-1042"),
        call("check_stock", product="copper kettle"),
        text="I will look at order A-1042 and at the stock of the copper kettle, then open the return.",
        why="Order and stock do not depend on each other, so I ask for both at once; the return needs the order.",
    ),
    step(
        call("start_return", order_id="A-1042", reason="kettle leaks"),
        why="The order was delivered, so a return can be opened.",
    ),
    "I am sorry that the copper kettle leaks. I opened return RT-558 for order A-1042, with a refund of 59.00 EUR. "
    "The copper kettle is in stock: 7 pieces.",
)

SCENARIOS = {
    "good": talk("shop", "kettle-leaks", KETTLE),
    "good_streamed": talk("shop", "kettle-leaks-streamed", KETTLE, streamed=True),
    "good_session": talk(
        "library",
        "tidal-almanac",
        ask(
            "Does the library have the book Tidal Almanac?",
            step(call("search_catalogue", query="tidal almanac"), why="The catalogue knows which books there are."),
            "Yes, the library has the book Tidal Almanac, number B-310: 2 copies are free at the Harbour branch.",
        ),
        ask(
            "What are the opening hours of the Harbour branch?",
            step(call("get_opening_hours", branch="Harbour")),
            "The Harbour branch is open Tuesday to Saturday; its opening hours are 10:00 to 18:00.",
        ),
        ask(
            "Please reserve it for me for pick-up there.",
            step(call("reserve_book", book_id="B-310", branch="Harbour"), why="It is B-310 and there is Harbour."),
            "Your reservation R-2207 is made: please pick it up before 20 March 2026, until then it is reserved.",
        ),
        ask(
            "When is my loan on card C-88 due, and can you renew the loan?",
            step(call("get_loans", card="C-88")),
            step(call("renew_loan", loan_id="L-901")),
            "On card C-88 the loan of Garden Birds was due on 18 March 2026. I renewed the loan until 8 April 2026.",
        ),
    ),
    "tool_loop": talk(
        "shop",
        "bread-oven",
        ask(
            "Which help article explains how to descale a bread oven?",
            *(
                step(call("search_help", query="descale bread oven"), why="Nothing came back, I will search again.")
                for _ in range(4)
            ),
            "I searched the help articles several times but found none that explains how to descale a bread oven.",
        ),
    ),
    "repeated_answer": talk(
        "clinic",
        "dentist-visit",
        ask(
            "When is my dentist visit V-670?",
            step(call("get_visit", visit_id="V-670")),
            "Your dentist visit V-670 is on 11 March 2026 at 09:00.",
        ),
        ask("How much does a dental cleaning cost?", "Your dentist visit V-670 is on 11 March 2026 at 09:00."),
        ask("May I eat before a blood test?", "Your dentist visit V-670 is on 11 March 2026 at 09:00."),
        ask("Is there parking at the clinic?", "Your dentist visit V-670 is on 11 March 2026 at 09:00."),
    ),
    "off_topic": talk(
        "library",
        "renewal-question",
        ask(
            "How many times can I renew loan L-901?",
            step(call("renew_loan", loan_id="L-901")),
            "Volcanic soil drains quickly, which is why vines on the southern slopes ripen two weeks early.",
        ),
        ask(
            "And until when is the Mill Street branch open on Friday?",
            step(call("get_opening_hours", branch="Mill Street")),
            "A good goalkeeper narrows the angle by stepping towards the striker before the shot.",
        ),
    ),
    "tool_error": talk(
        "shop",
        "lost-parcel",
        ask(
            "Where is my parcel PX-7000?",
            step(call("track_parcel", parcel_id="PX-7000"), why="Ask the carrier."),
            step(call("track_parcel", parcel_id="PX-7000"), why="It timed out; one more try."),
            "The carrier did not answer, so I cannot say where parcel PX-7000 is now. Please ask again later.",
        ),
        failing_tools=True,
    ),
    "crashed": talk(
        "library",
        "two-books",
        ask(
            "Reserve the books Tidal Almanac and Bread from Scratch at Mill Street.",
            step(call("search_catalogue", query="tidal almanac"), call("search_catalogue", query="bread from scratch")),
            REJECTED,
        ),
        raises=True,
    ),
    "gives_up": talk(
        "clinic",
        "earlier-slot",
        ask(
            "Move my dentist visit V-670 to the earliest free slot next week.",
            step(call("get_visit", visit_id="V-670"), why="First the visit."),
            "Unfortunately I cannot help with that. Please call the clinic.",
        ),
    ),
    "wrong_tool": talk(
        "shop",
        "lamp-warranty",
        ask(
            "How long is the warranty on a desk lamp?",
            step(
                call("check_stock", product="desk lamp"),
                text="Let me look that up.",
                why="The user asks about a desk lamp.",
            ),
            "The desk lamp is a very good choice, and 23 of them are ready to be sent.",
        ),
    ),
}

RACE = ask(
    "Who won the ferry race of 2026?",
    Reply(
        "The boat Aker won the ferry race on 14 June 2026.",
        served=(Served("search", {"query": "ferry race 2026 winner"}, "Aker wins the ferry race of 14 June 2026"),),
    ),
)

HOSTED = {
    "search_and_code": talk(
        "library",
        "ferry-race",
        RACE,
        ask(
            "How many minutes are 7 crossings of 35 minutes each?",
            Reply("Seven crossings take 245 minutes.", served=(Served("code", {"code": "print(7 * 35)"}, "245\n"),)),
        ),
        ask(
            "Is there news of the Tidal Almanac, and does the library have it?",
            Reply(
                "There is a new edition. I will look whether it is here.",
                (call("search_catalogue", query="tidal almanac"),),
                served=(
                    Served("search", {"query": "tidal almanac news"}, "Tidal Almanac: the edition of 2026 is out"),
                ),
            ),
            Reply("The edition of 2026 is out, and the library has the book, number B-310."),
        ),
    ),
    "search_streamed": talk("library", "ferry-race-streamed", RACE, streamed=True),
    "mcp_and_files": talk(
        "library",
        "race-rules",
        ask(
            "Which boat won the race, says the race office?",
            Reply(
                "The race office names Aker, on 14 June 2026.",
                served=(Served("mcp", {"year": 2026}, "Aker, 14 June 2026", name="find_race"),),
            ),
        ),
        ask(
            "How many people may be aboard, by the rules of the race?",
            Reply(
                "By the rules, at most 12 people may be aboard.",
                served=(Served("files", {"queries": ["people aboard"]}, "Rule 4: at most 12 people are aboard."),),
            ),
        ),
        ask(
            "And who was second, says the race office?",
            Reply(
                "The race office did not answer, so I cannot say who was second.",
                served=(Served("mcp", {"year": 2026, "place": 2}, name="find_race", error="race office is closed"),),
            ),
        ),
    ),
}
"""Sessions with hosted tools."""

SCRIPTS: dict[str, Script] = {name: scenario.dialogue for name, scenario in {**SCENARIOS, **HOSTED}.items()}

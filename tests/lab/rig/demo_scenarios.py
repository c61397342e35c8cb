"""The sessions of the shipped demo: three desks, good and bad.

``framework``: a set of ``frameworks.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.lab.rig.scenarios import REJECTED, Scenario, ask, call, step, talk


@dataclass(frozen=True)
class DemoSession:
    """A scenario, its framework, and whether the agent succeeds."""

    framework: str
    good: bool
    scenario: Scenario

    @property
    def name(self) -> str:
        """Return the session ID."""
        return self.scenario.session


def good(framework: str, scenario: Scenario) -> DemoSession:
    """Return a successful session."""
    return DemoSession(framework, True, scenario)


def bad(framework: str, scenario: Scenario) -> DemoSession:
    """Return a failed session."""
    return DemoSession(framework, False, scenario)


SHOP, LIBRARY, CLINIC = "langgraph_genai", "openai_agents_genai", "pydantic_ai"

DEMO = [
    good(
        SHOP,
        talk(
            "shop",
            "refund-request",
            ask(
                "I want a refund for the desk lamp in order A-1103, it flickers. What did I pay for the lamp?",
                step(call("find_order", order_id="A-1103"), why="The order says what was paid."),
                "You paid 42.50 EUR for the desk lamp in order A-1103. Since the lamp flickers, you can have a refund.",
            ),
            ask(
                "Then please open the return of order A-1103 because the lamp flickers.",
                step(call("start_return", order_id="A-1103", reason="lamp flickers")),
                "I opened return RT-558 for order A-1103 because the lamp flickers; the return label is in your mail.",
            ),
            ask(
                "How many working days until the refund is on my card?",
                step(call("search_help", query="refund time")),
                "The refund is on your card within 5 working days after we check the returned item in.",
            ),
            ask(
                "How long is the warranty on lamps?",
                step(call("search_help", query="warranty lamps")),
                "The warranty on lamps is 24 months long, counted from the day of delivery.",
            ),
        ),
    ),
    good(
        LIBRARY,
        talk(
            "library",
            "book-reservation",
            ask(
                "Do you have the book Bread from Scratch, and at which branch?",
                step(call("search_catalogue", query="bread from scratch"), why="The catalogue knows the branch."),
                "Yes, we have the book Bread from Scratch: one copy is free at the Mill Street branch.",
            ),
            ask(
                "What are the opening hours of the Mill Street branch and of the Harbour branch?",
                step(
                    call("get_opening_hours", branch="Mill Street"),
                    call("get_opening_hours", branch="Harbour"),
                    why="Two branches, two independent questions.",
                ),
                "Opening hours: the Mill Street branch is open Monday to Friday from 9:00 to 17:00, the Harbour branch "
                "is open Tuesday to Saturday from 10:00 to 18:00.",
            ),
            ask(
                "Please reserve the bread book for me at Mill Street.",
                step(call("reserve_book", book_id="B-127", branch="Mill Street")),
                "The bread book is reserved for you at Mill Street: reservation R-2207, held until 20 March 2026.",
            ),
            ask(
                "Which loans are on my card C-88, and when are the loans due?",
                step(call("get_loans", card="C-88")),
                "There is one loan on your card C-88: Garden Birds, and that loan is due on 18 March 2026.",
            ),
        ),
    ),
    good(
        CLINIC,
        talk(
            "clinic",
            "appointment-change",
            ask(
                "When is my dentist appointment V-670?",
                step(call("get_visit", visit_id="V-670")),
                "Your dentist appointment V-670 is on 11 March 2026 at 9:00.",
            ),
            ask(
                "I am travelling that day. Which free slots does the dentist have in the following week?",
                step(call("find_slots", department="dentist"), why="Free slots of the department."),
                "In the following week the dentist has two free slots: 16 March at 8:30 and 17 March at 15:00.",
            ),
            ask(
                "Move me to the slot on 17 March at 15:00, please.",
                step(call("book_slot", slot_id="S-19", visit_id="V-670")),
                "Done, I moved you to the slot on 17 March at 15:00.",
            ),
            ask(
                "What does a dental cleaning cost if the insurance does not pay?",
                step(call("get_price", treatment="dental cleaning")),
                "A dental cleaning costs 72 EUR if the insurance does not pay for the cleaning.",
            ),
        ),
    ),
    good(
        SHOP,
        talk(
            "shop",
            "bookshelf-delivery",
            ask(
                "Where is the oak bookshelf that I ordered, order A-1077?",
                step(call("find_order", order_id="A-1077")),
                step(call("track_parcel", parcel_id="PX-3391"), why="The order names the parcel."),
                "The oak bookshelf you ordered in order A-1077 is in transit: its parcel is at the Utrecht depot.",
            ),
            ask(
                "On what day will the parcel be delivered, and do I have to sign for the parcel?",
                step(call("track_parcel", parcel_id="PX-3391")),
                "The parcel will be delivered on 12 March 2026, and yes, you have to sign for it that day.",
            ),
            ask(
                "Is a copper kettle in stock, too?",
                step(call("check_stock", product="copper kettle")),
                "Yes, the copper kettle is in stock; there are 7 pieces.",
            ),
        ),
    ),
    bad(
        LIBRARY,
        talk(
            "library",
            "stuck-search",
            ask(
                "Do you have the book Tidal Almanac?",
                step(call("search_catalogue", query="tidal almanac")),
                "Yes, we have the book Tidal Almanac; two copies of the book are free at the Harbour branch.",
            ),
            ask(
                "And is there a book about lighthouses in Norway?",
                *(
                    step(
                        call("search_catalogue", query="lighthouses norway"), why="No result. I will search once more."
                    )
                    for _ in range(6)
                ),
                "After several searches I found no book about lighthouses in Norway.",
            ),
        ),
    ),
    bad(
        SHOP,
        talk(
            "shop",
            "same-answer-again",
            ask(
                "What is the status of order A-1042?",
                step(call("find_order", order_id="A-1042")),
                "The status of order A-1042, the copper kettle, is delivered; it was delivered on 2 March 2026.",
            ),
            ask(
                "Good. How do I send the kettle back?",
                "The status of order A-1042, the copper kettle, is delivered; it was delivered on 2 March 2026.",
            ),
            ask(
                "No, I mean: what is your return address?",
                "The status of order A-1042, the copper kettle, is delivered; it was delivered on 2 March 2026.",
            ),
            ask(
                "Can I talk to a person?",
                "The status of order A-1042, the copper kettle, is delivered; it was delivered on 2 March 2026.",
            ),
        ),
    ),
    bad(
        CLINIC,
        talk(
            "clinic",
            "fasting-question",
            ask(
                "May I drink coffee before my blood test tomorrow?",
                step(call("get_leaflet", examination="blood test")),
                "Medieval stonemasons marked each block so that the guild could count who had carved what.",
            ),
            ask(
                "And how long before the blood test must I stop eating?",
                "Jazz drummers often tune the snare a little higher than rock drummers do.",
            ),
            ask(
                "Can I drive home after the eye exam?",
                step(call("get_leaflet", examination="eye exam")),
                "Satellites in low orbit pass over both poles about fourteen times every day.",
            ),
        ),
    ),
    bad(
        LIBRARY,
        talk(
            "library",
            "failed-renewal",
            ask(
                "Which loans are on card C-88?",
                step(call("get_loans", card="C-88")),
                "On card C-88 there is one loan: Garden Birds, due on 18 March 2026.",
            ),
            ask("Please renew all my loans on that card.", step(call("get_loans", card="C-88")), REJECTED),
            raises=True,
        ),
    ),
    bad(
        SHOP,
        talk(
            "shop",
            "lost-parcel",
            ask(
                "My parcel PX-7000 should have come on Monday. Where is it?",
                step(call("track_parcel", parcel_id="PX-7000")),
                step(call("track_parcel", parcel_id="PX-7000"), why="A time-out; try again."),
                "The carrier's system timed out, so I do not know where parcel PX-7000 is.",
            ),
            ask("Try again, it is a birthday present!", step(call("track_parcel", parcel_id="PX-7000")), REJECTED),
            raises=True,
            failing_tools=True,
        ),
    ),
    bad(
        CLINIC,
        talk(
            "clinic",
            "made-up-price",
            ask(
                "What does a dental cleaning cost if the insurance does not pay?",
                step(call("get_price", treatment="dental cleaning")),
                "A dental cleaning costs 49.99 EUR if the insurance does not pay for the cleaning.",
            ),
            ask(
                "Which free slots does the dentist have next week?",
                step(call("find_slots", department="dentist"), why="Free slots of the department."),
                "Next week the dentist has two free slots: 16 March at 8:30 and 17 March at 15:00.",
            ),
        ),
    ),
]

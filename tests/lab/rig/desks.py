"""The three businesses of the rig's agents: names, instructions and tools.

Tools are plain functions over fabricated records. Uses only the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

ORDERS = {
    "A-1042": {"item": "copper kettle", "status": "delivered", "delivered": "2026-03-02", "paid_eur": 59.0},
    "A-1077": {"item": "oak bookshelf", "status": "in transit", "parcel": "PX-3391", "paid_eur": 184.0},
    "A-1103": {"item": "desk lamp", "status": "delivered", "delivered": "2026-03-05", "paid_eur": 42.5},
}
PARCELS = {"PX-3391": {"location": "Utrecht depot", "expected": "2026-03-12", "signature_needed": True}}
STOCK = {"copper kettle": 7, "oak bookshelf": 0, "desk lamp": 23}
ARTICLES = {
    "refund time": "Refunds reach the card within 5 working days after the returned item is checked in.",
    "warranty": "Lamps and electric items carry a warranty of 24 months from the day of delivery.",
}


def find_order(order_id: str) -> str:
    """Look up an order: item, status, delivery and the amount paid.

    Args:
        order_id: Order number, such as A-1042
    """
    return json.dumps({"order_id": order_id, **ORDERS[order_id]} if order_id in ORDERS else {"error": "no such order"})


def track_parcel(parcel_id: str) -> str:
    """Where a parcel is and when it is expected.

    Args:
        parcel_id: Parcel number, such as PX-3391
    """
    if parcel_id not in PARCELS:
        raise RuntimeError("carrier gateway timed out")
    return json.dumps({"parcel_id": parcel_id, **PARCELS[parcel_id]})


def check_stock(product: str) -> str:
    """How many pieces of a product are in stock.

    Args:
        product: Product name
    """
    return json.dumps({"product": product, "pieces": STOCK.get(product, 0)})


def start_return(order_id: str, reason: str) -> str:
    """Open a return for an order and send the label.

    Args:
        order_id: Order number
        reason: Why the item comes back
    """
    return json.dumps(
        {"order_id": order_id, "return_id": "RT-558", "reason": reason, "refund_eur": ORDERS[order_id]["paid_eur"]}
    )


def search_help(query: str) -> str:
    """Search the help articles of the shop.

    Args:
        query: A few words
    """
    return json.dumps({"articles": [text for title, text in ARTICLES.items() if title in query.lower()]})


BOOKS = {
    "tidal": {"book_id": "B-310", "title": "Tidal Almanac", "copies_free": 2, "branch": "Harbour"},
    "bread": {"book_id": "B-127", "title": "Bread from Scratch", "copies_free": 1, "branch": "Mill Street"},
}
LOANS = {"C-88": [{"loan_id": "L-901", "title": "Garden Birds", "due": "2026-03-18"}]}
HOURS = {"Harbour": "Tuesday to Saturday, 10:00 to 18:00", "Mill Street": "Monday to Friday, 9:00 to 17:00"}


def search_catalogue(query: str) -> str:
    """Search the catalogue of the library.

    Args:
        query: Words of a title or a subject
    """
    return json.dumps({"books": [book for word, book in BOOKS.items() if word in query.lower()]})


def get_loans(card: str) -> str:
    """The books on loan to a card.

    Args:
        card: Library card number, such as C-88
    """
    return json.dumps({"card": card, "loans": LOANS.get(card, [])})


def renew_loan(loan_id: str) -> str:
    """Extend a loan by three weeks.

    Args:
        loan_id: Loan number, such as L-901
    """
    if loan_id != "L-901":
        raise RuntimeError("loan service unavailable")
    return json.dumps({"loan_id": loan_id, "due": "2026-04-08", "renewals_left": 1})


def reserve_book(book_id: str, branch: str) -> str:
    """Put a book aside for pick-up at a branch.

    Args:
        book_id: Book number, such as B-310
        branch: Name of the branch
    """
    return json.dumps({"book_id": book_id, "branch": branch, "reservation_id": "R-2207", "held_until": "2026-03-20"})


def get_opening_hours(branch: str) -> str:
    """Opening hours of a branch.

    Args:
        branch: Name of the branch
    """
    return json.dumps({"branch": branch, "hours": HOURS.get(branch)})


SLOTS = {
    "dentist": [
        {"slot_id": "S-14", "day": "2026-03-16", "time": "08:30"},
        {"slot_id": "S-19", "day": "2026-03-17", "time": "15:00"},
    ],
    "eye clinic": [{"slot_id": "S-31", "day": "2026-03-19", "time": "11:15"}],
}
VISITS = {"V-670": {"department": "dentist", "day": "2026-03-11", "time": "09:00"}}
LEAFLETS = {
    "blood test": "Eat and drink nothing but water for 10 hours before the blood test.",
    "eye exam": "Bring your glasses; do not drive after the drops.",
}


def find_slots(department: str) -> str:
    """Free appointment slots of a department.

    Args:
        department: Department, such as dentist
    """
    return json.dumps({"department": department, "slots": SLOTS.get(department, [])})


def get_visit(visit_id: str) -> str:
    """A booked visit: department, day and time.

    Args:
        visit_id: Visit number, such as V-670
    """
    return json.dumps({"visit_id": visit_id, **VISITS.get(visit_id, {"error": "no such visit"})})


def book_slot(slot_id: str, visit_id: str) -> str:
    """Move a visit to a free slot.

    Args:
        slot_id: Slot number
        visit_id: Visit number
    """
    return json.dumps({"visit_id": visit_id, "slot_id": slot_id, "status": "moved"})


def get_leaflet(examination: str) -> str:
    """How a patient prepares for an examination.

    Args:
        examination: Name of the examination
    """
    return json.dumps({"examination": examination, "text": LEAFLETS.get(examination)})


def get_price(treatment: str) -> str:
    """The price of a treatment that the insurance does not pay.

    Args:
        treatment: Name of the treatment
    """
    return json.dumps({"treatment": treatment, "price_eur": {"dental cleaning": 72.0}.get(treatment)})


@dataclass(frozen=True)
class Desk:
    """An agent's name, service, instructions and tools."""

    agent: str
    service: str
    instructions: str
    tools: tuple[Callable[..., str], ...]


DESKS = {
    "shop": Desk(
        "order_desk",
        "shop-order-desk",
        "You are the order desk of a household shop. Look things up with the tools before you answer.",
        (find_order, track_parcel, check_stock, start_return, search_help),
    ),
    "library": Desk(
        "library_help",
        "library-help-desk",
        "You are the help desk of a town library. Look things up with the tools before you answer.",
        (search_catalogue, get_loans, renew_loan, reserve_book, get_opening_hours),
    ),
    "clinic": Desk(
        "clinic_reception",
        "clinic-reception",
        "You are the reception of a clinic. Look things up with the tools before you answer.",
        (find_slots, get_visit, book_slot, get_leaflet, get_price),
    ),
}

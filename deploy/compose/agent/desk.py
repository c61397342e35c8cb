"""The example agent: three tools over a small order book, and scripted replies in place of a model. So the example
needs no key, and its bad sessions are reproducible.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_ORDERS: Mapping[str, Mapping[str, str]] = {
    "A-1001": {"state": "shipped", "carrier": "Northern Post", "arrives": "Thursday", "paid": "49.90 EUR"},
    "A-1002": {"state": "delivered", "carrier": "Swift Parcel", "arrives": "yesterday", "paid": "120.00 EUR"},
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model wants a tool to be used."""

    name: str
    arguments: Mapping[str, str]


Reply = ToolCall | str
Script = Callable[[str], Iterator[Reply]]
"""Maps the user's question to the model's replies, a reply per call; the last is the answer."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: what the user asks, and how the model behaves in it."""

    name: str
    questions: tuple[str, ...]
    script: Script


def get_order(order: str) -> str:
    """What is known of an order. Raises :class:`LookupError` for one that does not exist."""
    found = _ORDERS.get(order)
    if found is None:
        raise LookupError(f"there is no order {order}")
    return json.dumps(found)


def search_articles(query: str) -> str:
    """Help articles about something."""
    return json.dumps({"query": query, "articles": []})


def request_refund(order: str) -> str:
    """Start a refund."""
    return json.dumps({"order": order, "refund": "requested", "amount": _ORDERS[order]["paid"]})


TOOLS: Mapping[str, Callable[..., str]] = {tool.__name__: tool for tool in (get_order, search_articles, request_refund)}


def _order_in(question: str) -> str:
    return next((word.strip(".,?!") for word in question.split() if word.startswith("A-")), "A-1001")


def helpful(question: str) -> Iterator[Reply]:
    """Look the order up and answer the question."""
    order = _order_in(question)
    yield ToolCall("get_order", {"order": order})
    if "refund" in question:
        yield ToolCall("request_refund", {"order": order})
        yield f"I have requested the refund of order {order}: {_ORDERS[order]['paid']} go back to your card."
    elif "carrier" in question:
        yield f"The carrier of order {order} is {_ORDERS[order]['carrier']}."
    else:
        yield f"Your parcel, order {order}, arrives {_ORDERS[order]['arrives']} with {_ORDERS[order]['carrier']}."


def circling(question: str) -> Iterator[Reply]:
    """Search for the same thing again and again, and give up."""
    for _ in range(6):
        yield ToolCall("search_articles", {"query": "parcel delivery"})
    yield f"I could not find out anything about your parcel, order {_order_in(question)}."


def repeating(question: str) -> Iterator[Reply]:
    """Repeats a reply for any question."""
    yield ToolCall("get_order", {"order": _order_in(question)})
    yield "Thank you for contacting our support team, we value your patience and will get back to you shortly."


def drifting(question: str) -> Iterator[Reply]:
    """Answer something that nobody asked for."""
    del question
    yield "Our summer sale has begun: garden chairs and barbecue grills cost up to forty percent less this week."


def failing(question: str) -> Iterator[Reply]:
    """Ask for an order that does not exist, which breaks the agent."""
    del question
    yield ToolCall("get_order", {"order": "A-9999"})
    yield "unreachable"


_QUESTIONS = (
    "Where is my parcel, order A-1001?",
    "Which carrier brings order A-1001?",
    "I want a refund for order A-1002.",
)
_BEHAVIOURS = (helpful, helpful, circling, repeating, drifting, failing)
SESSIONS = tuple(Session(script.__name__, _QUESTIONS, script) for script in _BEHAVIOURS)

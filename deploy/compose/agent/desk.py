"""The example agent's tools, order book and scripted replies, without a model."""

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
    name: str
    arguments: Mapping[str, str]


Reply = ToolCall | str
Script = Callable[[str], Iterator[Reply]]
"""Maps the user's question to the model's replies, a reply per call; the last is the answer."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: the user's questions, and the model's behaviour."""

    name: str
    questions: tuple[str, ...]
    script: Script


def get_order(order: str) -> str:
    """Return an order. Raises :class:`LookupError`."""
    found = _ORDERS.get(order)
    if found is None:
        raise LookupError(f"there is no order {order}")
    return json.dumps(found)


def search_articles(query: str) -> str:
    return json.dumps({"query": query, "articles": []})


def request_refund(order: str) -> str:
    return json.dumps({"order": order, "refund": "requested", "amount": _ORDERS[order]["paid"]})


TOOLS: Mapping[str, Callable[..., str]] = {tool.__name__: tool for tool in (get_order, search_articles, request_refund)}


def _order_in(question: str) -> str:
    return next((word.strip(".,?!") for word in question.split() if word.startswith("A-")), "A-1001")


def helpful(question: str) -> Iterator[Reply]:
    """Look up the order and answer."""
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
    for _ in range(6):
        yield ToolCall("search_articles", {"query": "parcel delivery"})
    yield f"I could not find out anything about your parcel, order {_order_in(question)}."


def repeating(question: str) -> Iterator[Reply]:
    yield ToolCall("get_order", {"order": _order_in(question)})
    yield "Thank you for contacting our support team, we value your patience and will get back to you shortly."


def drifting(question: str) -> Iterator[Reply]:
    """Answer off topic."""
    del question
    yield "Our summer sale has begun: garden chairs and barbecue grills cost up to forty percent less this week."


def failing(question: str) -> Iterator[Reply]:
    """Look up a missing order, which breaks the agent."""
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

"""What an application states of a conversation on its spans: the user's goal and profile, and what is known.

``pandaeval.goal`` and ``pandaeval.user.profile`` are texts, ``pandaeval.knowledge`` one text, several, or JSON of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_otel.base.semconv import PANDAEVAL_GOAL, PANDAEVAL_KNOWLEDGE, PANDAEVAL_PROFILE
from pandaeval_otel.model import Span, Trace

_MOST_ITEMS = 100


def goal_of(spans: Sequence[Span]) -> str:
    """The goal that the first of the spans with one states; ``""``: none."""
    return _first(spans, PANDAEVAL_GOAL)


def profile_of(spans: Sequence[Span]) -> str:
    """The profile of the user, likewise."""
    return _first(spans, PANDAEVAL_PROFILE)


def knowledge_of(trace: Trace, spans: Sequence[Span]) -> tuple[str, ...]:
    """What ``spans`` state to be known, and the documents that the ``trace`` found; each once, the first 100."""
    stated = (text for span in spans for text in _items(span.attributes.get(PANDAEVAL_KNOWLEDGE)))
    found = (_text(each) for span in trace.spans for each in span.documents)
    return tuple(dict.fromkeys([*stated, *found]))[:_MOST_ITEMS]


def _first(spans: Sequence[Span], key: str) -> str:
    stated = (_text(span.attributes[key]).strip() for span in spans if key in span.attributes)
    return next((text for text in stated if text), "")


def _items(stated: Any) -> Iterator[str]:
    match stated:
        case None:
            return
        case str():
            yield from _parsed(stated)
        case list() | tuple():
            yield from (text for each in stated if (text := _text(each).strip()))
        case _:
            yield _text(stated)


def _parsed(stated: str) -> Iterator[str]:
    """A text, or those of the JSON list that it holds."""
    held: Any = None
    if stated.lstrip().startswith("["):
        try:
            held = orjson.loads(stated)  # which raises nothing else, however deep the lists of a stranger are
        except ValueError:
            held = None
    if isinstance(held, list):
        yield from _items(held)
    elif stated.strip():
        yield stated.strip()


def _text(value: Any) -> str:
    try:
        return as_text(value)
    except RecursionError:  # hundreds of lists within each other tell nobody anything
        return "…"

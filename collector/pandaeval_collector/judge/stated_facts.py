"""Reads the facts that spans state for a judge: the user's goal and profile, and knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import orjson

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_otel.base.semconv import PANDAEVAL_GOAL, PANDAEVAL_KNOWLEDGE, PANDAEVAL_PROFILE
from pandaeval_otel.model import Span, Trace

_MOST_ITEMS = 100


def facts_of(trace: Trace, spans: Sequence[Span]) -> tuple[str, str, tuple[str, ...]]:
    """Returns the first goal and the first profile of the user that ``spans`` state, ``""`` without any; and what is
    known, with the documents retrieved in ``trace``, each once, the first 100."""
    known = [text for span in spans for text in _items(span.attributes.get(PANDAEVAL_KNOWLEDGE))]
    known += [_text(document) for span in trace.spans for document in span.documents]
    return _first(spans, PANDAEVAL_GOAL), _first(spans, PANDAEVAL_PROFILE), tuple(dict.fromkeys(known))[:_MOST_ITEMS]


def _first(spans: Sequence[Span], key: str) -> str:
    texts = (_text(span.attributes[key]).strip() for span in spans if key in span.attributes)
    return next(filter(None, texts), "")


def _items(stated: Any) -> Iterator[str]:
    """Yields a text, the items of a list, or those of the JSON list in a text."""
    if isinstance(stated, str):
        held: Any = None
        if stated.lstrip().startswith("["):
            with suppress(ValueError):  # which it raises alone, however deep the lists of a stranger are
                held = orjson.loads(stated)
        if isinstance(held, list):
            yield from _items(held)
        elif stated.strip():
            yield stated.strip()
    elif isinstance(stated, list | tuple):
        yield from (text for each in stated if (text := _text(each).strip()))
    elif stated is not None:
        yield _text(stated)


def _text(value: Any) -> str:
    try:
        return as_text(value)
    except RecursionError:  # hundreds of lists within each other tell nobody anything
        return "…"

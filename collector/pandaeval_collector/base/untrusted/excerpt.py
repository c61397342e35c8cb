"""Values that others wrote, as text: whole, and in lists, where nothing reorders or hides what stands beside it and
there is only so much room."""

from __future__ import annotations

import json
import re
from typing import Any

from pandaeval_collector.base.untrusted.printable import HIDING
from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trace

UNSAFE_CLASS = f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{HIDING}]"
"""Control characters, characters that reorder or hide text (bidi marks, zero-width ones, tags), and lone surrogates,
which no file can hold. Line ends and tabs stay."""
_UNSAFE = re.compile(UNSAFE_CLASS)


def clean(text: str) -> str:
    """``text`` with what is unsafe to show written out (``\\u202e``)."""
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def excerpt(text: str | None, room: int) -> str | None:
    """The beginning of a text, on one line."""
    if text is None:
        return None
    line = " ".join(text[: 2 * room].split())
    return clean(line if len(line) <= room and len(text) <= 2 * room else f"{line[: room - 1]}…")


def as_text(value: Any) -> str:
    """A value as JSON, with sorted keys; a text as it is. Raises ``RecursionError`` for lists within lists hundreds
    deep."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def stated(trace: Trace, name: str) -> str:
    """What the first span with this attribute says, as a bounded name: ``0`` is one, an empty text is none. ``""``:
    nothing."""
    for span in trace.spans:
        said = span.attributes.get(name) if span.attributes else None
        if said is not None and (text := str(said)):
            return bounded(text)
    return ""

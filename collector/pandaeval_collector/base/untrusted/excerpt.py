"""Text of others in lists: nothing that reorders or hides what stands beside it, and no longer than there is room."""

from __future__ import annotations

import re

from pandaeval_collector.base.untrusted.printable import HIDING

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

"""Values that stand in a source just as they were stated: most of them do, and to see that takes no reading."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pandaeval_collector.analysis.rules.grounding._numbers import PLAIN
from pandaeval_collector.analysis.rules.grounding._sources import Source
from pandaeval_collector.analysis.rules.grounding._value import AMOUNT, NUMBER, PERCENTAGE, Value

_DIGITS = re.compile(PLAIN)


def verbatim(value: Value, sources: Sequence[Source], at: int) -> bool:
    """Whether a source has the value by then, letter for letter, and not as a part of a longer one."""
    wanted = value.text
    if value.kind in (AMOUNT, NUMBER, PERCENTAGE):
        digits = _DIGITS.search(wanted)
        if digits is None or (digits.end() < len(wanted) and wanted[digits.end()].isalnum()):
            return False
        wanted = digits[0]
    return any(source.at <= at and _stands(wanted, source.text) for source in sources)


def _stands(wanted: str, text: str) -> bool:
    place = text.find(wanted)
    while place >= 0:
        if _free(text, place - 1, -1) and _free(text, place + len(wanted), 1):
            return True
        place = text.find(wanted, place + 1)
    return False


def _free(text: str, place: int, step: int) -> bool:
    """Whether a value may end at this place: no letter, no digit, and no sign between two digits."""
    if not 0 <= place < len(text):
        return True
    sign = text[place]
    if (sign.isalnum() and sign < "\u2e80") or sign == "_":
        return False
    beyond = place + step
    return sign not in ".,:-/" or not 0 <= beyond < len(text) or not text[beyond].isalnum()

"""The specific values of a text."""

from __future__ import annotations

import re

from pandaeval_collector.signals.grounding._dates import dates, minutes
from pandaeval_collector.signals.grounding._fold import squeezed
from pandaeval_collector.signals.grounding._numbers import readings
from pandaeval_collector.signals.grounding._patterns import FENCED, QUOTED, VALUES
from pandaeval_collector.signals.grounding._value import (
    AMOUNT,
    DATE,
    DURATION,
    EMAIL,
    IDENTIFIER,
    NAME,
    NUMBER,
    PERCENTAGE,
    TIME,
    URL,
    Value,
)

_DIGIT = re.compile(r"\d")
_FIRST_NUMBER = re.compile(r"\d.*", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]+")
_CLOSING = ".,;:!?*_"
_LONG = 6
"""Digits in a row, without a separator, that make an identifier of a number."""


def scan(text: str) -> list[Value]:
    """Every value, in order; the text is folded. Single digits are among the numbers."""
    found: list[Value] = []
    for match in VALUES.finditer(text):
        value = _value(match.lastgroup or "", match[0], match.start())
        if value is not None:
            found.append(value)
    return found


def without_code(text: str) -> str:
    """The text with blanks in place of fenced blocks of code, whose constants are no facts."""
    return FENCED.sub(lambda match: " " * len(match[0]), text) if "```" in text else text


def names(text: str) -> list[Value]:
    """What is quoted and looks like a name: words of which each begins with a capital, or any in CJK brackets."""
    found: list[Value] = []
    for match in QUOTED.finditer(text):
        quoted = (match[1] or match[2] or "").strip()
        words = quoted.split()
        if match[2] or (2 <= len(words) <= 6 and all(word[0].isupper() for word in words)):
            found.append(Value(NAME, quoted, match.start(), squeezed(quoted)))
    return found


def _value(group: str, text: str, start: int) -> Value | None:
    if group == "skip":
        return None
    if group in ("url", "email"):
        text = text.rstrip(_CLOSING)
        return Value(URL if group == "url" else EMAIL, text, start, squeezed(text))
    if group in ("uuid", "phone"):
        return Value(IDENTIFIER, text, start, squeezed(text))
    if group == "date":
        days = dates(text)
        return Value(DATE, text, start, "", days) if days else None
    if group == "time":
        at = minutes(text)
        return Value(TIME, text, start, "", at) if at else _number(NUMBER, text, start)
    if group == "duration":
        return Value(DURATION, text, start, "", (_length(text),))
    if group == "identifier":
        return _identifier(text, start)
    if group == "amount":
        return _number(AMOUNT, text, start)
    return _number(PERCENTAGE if group == "percentage" else NUMBER, text, start)


def _number(kind: str, text: str, start: int) -> Value | None:
    digits = _FIRST_NUMBER.search(text)
    if digits is None:
        return None
    numbers, step = readings(digits[0])
    if kind == NUMBER and text.isdigit() and len(text) >= _LONG and not text.endswith("000"):
        return Value(IDENTIFIER, text, start, text, numbers, step)
    if not numbers:
        return Value(NUMBER, text, start, squeezed(text))
    return Value(kind, text, start, squeezed(digits[0]), numbers, step)


def _identifier(text: str, start: int) -> Value | None:
    """Letters and digits mixed are an identifier, except words with a number or two (COVID-19, Terminal-2)."""
    key = squeezed(text)
    digits = len(_DIGIT.findall(key))
    longest = max(map(len, _LETTERS.findall(text)), default=0)
    if len(key) < 4 or digits < 2 or (longest >= 4 and digits <= 2):
        return None
    return Value(IDENTIFIER, text, start, key)


def _length(text: str) -> float:
    """Minutes."""
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    if len(numbers) > 1:
        return float(numbers[0] * 60 + numbers[1])
    return float(numbers[0] * (60 if re.search(r"\d[ \-]?(?:h|S)", text, re.IGNORECASE) else 1))

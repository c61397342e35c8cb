"""The specific values of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pandaeval_collector.analysis.rules.grounding._patterns import (
    ADDRESS,
    CODES,
    FENCED,
    IDIOM,
    MONTHS,
    QUOTED,
    SIGNS,
    VALUE,
    dates,
    minutes,
    readings,
)
from pandaeval_collector.analysis.rules.grounding._patterns import DATE as DATED
from pandaeval_collector.analysis.rules.grounding._value import (
    AMOUNT,
    DATE,
    DURATION,
    IDENTIFIER,
    NAME,
    NUMBER,
    PERCENTAGE,
    TIME,
    Value,
    squeezed,
)

_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9]+")
_LIST_MARK = re.compile(r"[0-9]{1,3}[.)](?=\s)")
_DATED = re.compile(DATED, re.IGNORECASE)
_LONGEST_PREFIX = 12
_LONGEST_TOKEN = 64
"""Characters read before a digit; without a limit a text of dashes would take quadratic time."""
_PARTS_OF_DAY = ("午前", "午後", "上午", "下午", "晚上", "早上", "오전", "오후")
_BEFORE = frozenset([*MONTHS.split("|"), *CODES.casefold().split("|"), *_PARTS_OF_DAY])
_FIRST_NUMBER = re.compile(r"\d.*", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z]+")
_CODE = re.compile(r"(?=[A-Z0-9]{6,8}$)(?:[A-Z]+[0-9][A-Z]+|[B-DF-HJ-NP-TV-Z]+[0-9]|[0-9][B-DF-HJ-NP-TV-Z]+)$")
"""A code with a single digit, such as a booking's (YAX4DR): capitals on both sides of it, or no vowel."""
_CLOSING = ".,;:!?*_"
_LONG = 6
"""Digits in a row, without a separator, that make an identifier of a number."""


def scan(text: str) -> list[Value]:
    """Returns every value with a digit, in order; ``text`` is folded. Single digits are among the numbers."""
    found: list[Value] = []
    done = 0
    digit = _DIGIT.search(text)
    while digit is not None:
        at = digit.start()
        match = None if _numbers_a_line(text, done, at) else next(filter(None, _tried(text, done, at)), None)
        if match is None:
            run = _LIST_MARK.match(text, at) or _DIGITS.match(text, at)
            done = run.end() if run else at + 1
        else:
            value = _value(match.lastgroup or "", match[0], match.start())
            if value is not None:
                found.append(value)
            done = match.end()
        digit = _DIGIT.search(text, done)
    return found


def _tried(text: str, done: int, at: int) -> Iterator[re.Match[str] | None]:
    """Yields matches from where the value may begin: a word or sign before it, its token, the digit itself."""
    start = at
    least = max(done, at - _LONGEST_TOKEN)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_-") and text[start - 1] < "\u2e80":
        start -= 1
    prefix = _prefixed(text, done, start)
    if prefix < start:
        yield _ending_after(VALUE.match(text, prefix), at)
    if start < at:
        yield _ending_after(VALUE.match(text, start), at)
    yield VALUE.match(text, at)


def _prefixed(text: str, done: int, start: int) -> int:
    """Returns where a month, a currency, a part of the day or a sign before this place begins, or the place."""
    end = start - 1 if start > done and text[start - 1] in " -" else start
    begin = end
    while begin > done and end - begin < _LONGEST_PREFIX and (text[begin - 1].isalpha() or text[begin - 1] == "."):
        begin -= 1
    if text[begin:end].rstrip(".").casefold() in _BEFORE:
        return begin
    while begin < end and text[begin:end] not in _BEFORE:  # 合計午後3時: only the end of the letters counts
        begin += 1
    if begin == end and end > done and text[end - 1] in SIGNS:
        begin = end - 1
        while begin > done and text[begin - 1] in "RUS":
            begin -= 1
    return begin if begin < end else start


def _ending_after(match: re.Match[str] | None, at: int) -> re.Match[str] | None:
    return match if match is not None and match.end() > at else None


def _numbers_a_line(text: str, done: int, at: int) -> bool:
    """Returns whether the number at this place only numbers an item of a list."""
    mark = _LIST_MARK.match(text, at)
    if mark is None:
        return False
    before = text[max(text.rfind("\n", 0, at) + 1, done) : at]
    return not before.strip(" \t#>*-") and _DATED.match(text, at) is None


def without_code(text: str) -> str:
    """Returns the text with blanks in place of fenced code, whose constants are no facts, and of data in URLs."""
    return FENCED.sub(lambda match: " " * len(match[0]), text) if "```" in text or "data:" in text else text


def addresses(text: str) -> list[Value]:
    """Returns the e-mail and web addresses of a text."""
    found: list[Value] = []
    if "@" not in text and "://" not in text and "www." not in text:
        return found
    for match in ADDRESS.finditer(text):
        address = match[0].rstrip(_CLOSING)
        found.append(Value(match.lastgroup or "", address, match.start(), squeezed(address)))
    return found


def without(text: str, values: list[Value]) -> str:
    """Returns the text with blanks in place of these values."""
    for value in values:
        text = text[: value.start] + " " * len(value.text) + text[value.start + len(value.text) :]
    return text


def names(text: str) -> list[Value]:
    """Returns quoted texts that look like names: all words begin with a capital, or any text in CJK brackets."""
    found: list[Value] = []
    if '"' not in text and text.isascii():
        return found
    for match in QUOTED.finditer(text):
        quoted = (match[1] or match[2] or "").strip(" .,;:!?")
        words = quoted.split()
        if match[2] or (2 <= len(words) <= 6 and all(word[0].isupper() for word in words)):
            found.append(Value(NAME, quoted, match.start(), squeezed(quoted)))
    return found


def _value(group: str, text: str, start: int) -> Value | None:
    if group == "skip":
        return None
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
    """Returns mixed letters and digits as an identifier, except words with a number or two (COVID-19, Terminal-2),
    names of standards and roads (SHA-256, US-50), spans and sizes (mid-50s, 1-to-1, 1024x1024)."""
    key = squeezed(text)
    digits = len(_DIGIT.findall(key))
    longest = max(map(len, _LETTERS.findall(text)), default=0)
    if _CODE.match(text) is not None:
        return Value(IDENTIFIER, text, start, key)
    if len(key) < 4 or digits < 2 or (longest >= 4 and digits <= 2) or IDIOM.match(text) is not None:
        return None
    return Value(IDENTIFIER, text, start, key)


def _length(text: str) -> float:
    """Returns a duration in minutes."""
    numbers = [int(each) for each in re.findall(r"\d+", text)]
    if len(numbers) > 1:
        return float(numbers[0] * 60 + numbers[1])
    return float(numbers[0] * (60 if re.search(r"\d[ \-]?(?:h|S)", text, re.IGNORECASE) else 1))

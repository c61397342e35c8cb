"""Dates and times as people and programs write them."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = (
    "january jan januar janvier enero janeiro gennaio январь января januari",
    "february feb februar février febrero fevereiro febbraio февраль февраля februari",
    "march mar märz mars marzo março март марта maart",
    "april apr avril abril aprile апрель апреля",
    "may mai mayo maio maggio май мая mei",
    "june jun juni juin junio junho giugno июнь июня",
    "july jul juli juillet julio julho luglio июль июля",
    "august aug août agosto август августа augustus",
    "september sep sept septembre septiembre setembro settembre сентябрь сентября",
    "october oct oktober okt octobre octubre outubro ottobre октябрь октября",
    "november nov novembre noviembre novembro ноябрь ноября",
    "december dec dezember dez décembre diciembre dezembro dicembre декабрь декабря",
)
_MONTH_OF = {word: number for number, words in enumerate(_MONTHS, 1) for word in words.split()}
MONTHS = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_DAY = r"\d{1,2}"
_FREE = r"(?<![A-Za-z0-9_])"

_OF = r"(?:(?:day )?of |de |di )"
DATE = (
    rf"{_FREE}\d{{4}}[-/.]{_DAY}[-/.]{_DAY}(?!\d)"
    rf"|{_FREE}{_DAY}[-/.]{_DAY}[-/.](?:\d{{4}}|\d{{2}})(?!\d|[.:]\d)"
    rf"|(?:\d{{4}}\s?[年년]\s?)?{_DAY}\s?[月월]\s?{_DAY}\s?[日일号]"
    rf"|{_FREE}{_DAY}(?:st|nd|rd|th|\.|º)?\s?{_OF}?-?(?:{MONTHS})\b\.?(?:,?[ -](?:de |del )?\d{{4}}\b)?"
    rf"|{_FREE}(?:{MONTHS})\.?[ -]{_DAY}(?:st|nd|rd|th)?(?!\d|[.,]\d|:)\b(?:,? \d{{4}}\b)?"
)
TIME = (
    rf"(?:(?<=\d)T|(?<![A-Za-z0-9_:.])){_DAY}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?(?!\d|:)(?:\s?[ap]\.?m\b\.?)?"
    rf"|{_FREE}{_DAY}(?:[0-5]\d)?\s?[ap]\.?m\b\.?"
    rf"|{_FREE}{_DAY}(?:[.:]\d{{2}})? Uhr(?: \d{{2}})?|{_FREE}{_DAY} ?h ?\d{{2}}(?!\d)"
    rf"|(?:午前|午後|上午|下午|晚上|早上|오전|오후)?\s?{_DAY}\s?[时時点點시](?!间|間|간|長)(?:\s?\d{{1,2}}\s?[分분]|半)?"
)
_ALPHA = re.compile(rf"({MONTHS})\b", re.IGNORECASE)
_NUMERAL = re.compile(r"\d+")
_AFTERNOON = re.compile(r"p\.?m|午後|下午|晚上|오후", re.IGNORECASE)
_MORNING = re.compile(r"a\.?m|午前|上午|早上|오전", re.IGNORECASE)


def dates(text: str) -> tuple[float, ...]:
    """The days that it may name, as ``y * 10000 + m * 100 + d`` (year 0 where none is written): two for 03/04/2026."""
    numbers = [int(each) for each in _NUMERAL.findall(text)]
    name = _ALPHA.search(text)
    if name is not None:
        month = _MONTH_OF[name[1].casefold()]
        day, year = numbers[0], numbers[1] if len(numbers) > 1 else 0
        found = [_day(year, month, day)]
    elif len(numbers) == 2:
        found = [_day(0, numbers[0], numbers[1])]
    elif numbers[0] > 31:
        found = [_day(*numbers[:3])]
    else:
        year = numbers[2] if numbers[2] > 99 else 2000 + numbers[2]
        found = [_day(year, numbers[1], numbers[0]), _day(year, numbers[0], numbers[1])]
    return tuple(dict.fromkeys(float(each) for each in found if each))


def minutes(text: str) -> tuple[float, ...]:
    """Minutes since midnight that it may name: two where 3:15 may be in the afternoon."""
    numbers = [int(each) for each in _NUMERAL.findall(text)[:2]]
    if numbers[0] > 99:  # 515 AM, as weather services write
        numbers = list(divmod(numbers[0], 100))
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else (30 if "半" in text else 0)
    if hour > 24 or minute > 59:
        return ()
    if _AFTERNOON.search(text):
        return (float(hour % 12 * 60 + 720 + minute),)
    if _MORNING.search(text):
        return (float(hour % 12 * 60 + minute),)
    at = float(hour % 24 * 60 + minute)
    return (at, at + 720.0) if 0 < hour <= 12 and at < 720.0 else (at,)


def ordinal(day: float) -> int | None:
    """Days since the year 1; ``None`` without a year, or for February 29th of a year that has none."""
    year, rest = divmod(int(day), 10000)
    try:
        return date(year, rest // 100, rest % 100).toordinal()
    except ValueError:
        return None


def _day(year: int, month: int, day: int) -> int:
    """0 where there is no such day."""
    try:
        date(year or 2024, month, day)  # a leap year
    except ValueError:
        return 0
    return year * 10000 + month * 100 + day

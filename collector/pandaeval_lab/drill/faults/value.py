"""Faults of the family ``value``: a value of the answer is wrong."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from random import Random

from pandaeval_lab.drill.edits import AnswerEdit
from pandaeval_lab.drill.fault import Fault, NotApplicableError, Subject, family
from pandaeval_lab.drill.faults._places import (
    AMOUNT,
    DATE,
    IDENTIFIER,
    NAME,
    TIME,
    URL,
    VALUES,
    replaced,
    scrambled,
    swapped,
    unknown,
)

_FIRST = ("Marlow", "Ottilie", "Thaddeus", "Perpetua", "Caspian", "Ingeborg")
_LAST = ("Quist", "Vandersloot", "Abernethy", "Okonjo", "Szymborska", "Delacroix")
_OTHER = {
    "minutes": "hours", "hours": "days", "days": "weeks", "weeks": "months", "months": "years", "years": "months",
    "km": "m", "kg": "g", "GB": "MB", "MB": "GB", "ms": "s", "°C": "°F", "°F": "°C", "mph": "km/h", "miles": "km",
    "business days": "weeks",
}  # fmt: skip
_QUANTITY = re.compile(rf"\d ?({'|'.join(sorted(map(re.escape, _OTHER), key=len, reverse=True))})(?!\w)")
_MONEY = {"$": "€", "€": "$", "£": "$"}


def other_amount(old: str, rng: Random) -> str:
    places = len(old.partition(".")[2])
    new = float(old.replace(",", "")) * rng.choice((rng.uniform(0.5, 0.9), rng.uniform(1.1, 2.0))) + 1
    return f"{new:,.{places}f}" if "," in old else f"{new:.{places}f}"


def other_date(old: str, rng: Random) -> str:
    """Return another date, weeks away, in the same notation."""
    return _moved(old, rng.randint(9, 90))


def next_day(old: str, rng: Random) -> str:
    """Return the day after or before, in the same notation."""
    return _moved(old, rng.choice((1, -1)))


def _moved(old: str, days: int) -> str:
    if old[0].isdigit():
        return (date.fromisoformat(old) + timedelta(days)).isoformat()
    moved = datetime.strptime(f"{old} 2024", "%B %d %Y") + timedelta(days)
    return f"{moved:%B} {moved.day}"


def other_name(old: str, rng: Random) -> str:
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


def other_time(old: str, rng: Random) -> str:
    """Return another time of day, in the same notation."""
    hour, minute = (int(each) for each in old.split(":"))
    most = 12 if hour <= 12 else 24
    return (
        f"{(hour + rng.randint(1, 9)) % most or most - 1:0{old.index(':')}d}:{(minute + rng.randint(3, 55)) % 60:02d}"
    )


def other_address(old: str, rng: Random) -> str:
    """Return the address with another host."""
    host = f"{rng.choice(('harbour', 'lumen', 'quarry'))}{rng.randint(100, 999)}"
    if "@" in old:
        return f"{old.partition('@')[0]}@{host}.example"
    scheme, _, rest = old.partition("://")
    return f"{scheme}://{host}.example/{rest.partition('/')[2]}"


def stale_value(subject: Subject, rng: Random) -> AnswerEdit:
    """The answer names a value of an earlier turn instead of this one's."""
    before = "\n".join(trace.output or "" for trace in subject.earlier)
    for pattern in rng.sample(VALUES, len(VALUES)):
        here, there = ({*pattern.findall(text)} for text in (subject.answer, before))
        if here and there - here:
            old, new = rng.choice(sorted(here)), rng.choice(sorted(there - here))
            return swapped(subject.answer, old, new, f"{old} → {new}, of an earlier turn")
    raise NotApplicableError("no earlier answer names another value of a kind that this one names")


def swapped_values(subject: Subject, rng: Random) -> AnswerEdit:
    """Two values in the answer stand in each other's place."""
    for pattern in rng.sample(VALUES, len(VALUES)):
        found = sorted({each for each in pattern.findall(subject.answer) if each in subject.known})
        if len(found) > 1:
            one, other = rng.sample(found, 2)
            parts: list[str] = re.split(rf"(?<!\w)({re.escape(one)}|{re.escape(other)})(?!\w)", subject.answer)
            exchanged = {one: other, other: one}
            return AnswerEdit("".join(exchanged.get(part, part) for part in parts), f"{one} and {other} swapped")
    raise NotApplicableError("the answer names no two values of one kind")


def wrong_sum(subject: Subject, rng: Random) -> AnswerEdit:
    """An amount that follows from others was computed wrongly."""
    amounts = {*AMOUNT.findall(subject.answer)}
    computed = sorted(each for each in amounts if each.replace(",", "").removesuffix(".00") not in subject.known)
    if not computed or len(amounts) < 2:
        raise NotApplicableError("the answer names no amount that follows from others")
    old = rng.choice(computed)
    new = unknown(subject, rng, old, other_amount)
    return swapped(subject.answer, old, new, f"computed {old} → {new}")


def wrong_unit(subject: Subject, rng: Random) -> AnswerEdit:
    """A quantity in the answer has the right digits and a wrong unit."""
    answer = subject.answer
    if units := sorted({*_QUANTITY.findall(answer)}):
        old = rng.choice(units)
        text = re.sub(rf"(?<=\d)( ?){re.escape(old)}(?!\w)", lambda place: place.group(1) + _OTHER[old], answer)
        return AnswerEdit(text, f"{old} → {_OTHER[old]}")
    if signs := sorted({*re.findall(r"[$€£](?=\d)", answer)}):
        old = rng.choice(signs)
        if _MONEY[old] not in subject.known:
            return AnswerEdit(re.sub(rf"\{old}(?=\d)", _MONEY[old], answer), f"{old} → {_MONEY[old]}")
    raise NotApplicableError("the answer names no quantity with a unit")


FAULTS = {
    "invented_amount": Fault(
        "value", "The answer names an amount of money that appears nowhere.", replaced(AMOUNT, "amount", other_amount)
    ),
    "invented_date": Fault(
        "value", "The answer names a date that appears nowhere.", replaced(DATE, "date", other_date)
    ),
    "invented_identifier": Fault(
        "value", "The answer names an identifier that appears nowhere.", replaced(IDENTIFIER, "identifier", scrambled)
    ),
    "invented_name": Fault(
        "value", "The answer names somebody or something that nobody mentioned.", replaced(NAME, "name", other_name)
    ),
    "invented_time": Fault(
        "value", "The answer names a time of day that appears nowhere.", replaced(TIME, "time of day", other_time)
    ),
    "invented_url": Fault(
        "value", "The answer names a web or mail address that appears nowhere.", replaced(URL, "address", other_address)
    ),
    "off_by_one_day": Fault(
        "value", "A date in the answer is off by a day, and appears nowhere.", replaced(DATE, "date", next_day)
    ),
    **family("value", stale_value, swapped_values, wrong_sum, wrong_unit),
}

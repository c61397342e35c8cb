"""A quantity in the answer has the right digits and a wrong unit."""

import re
from random import Random

from pandaeval_collector.drill.edits import AnswerEdit
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject

_OTHER = {
    "minutes": "hours", "hours": "days", "days": "weeks", "weeks": "months", "months": "years", "years": "months",
    "km": "m", "kg": "g", "GB": "MB", "MB": "GB", "ms": "s", "°C": "°F", "°F": "°C", "mph": "km/h", "miles": "km",
    "business days": "weeks",
}  # fmt: skip
_QUANTITY = re.compile(rf"\d ?({'|'.join(sorted(map(re.escape, _OTHER), key=len, reverse=True))})(?!\w)")
_MONEY = {"$": "€", "€": "$", "£": "$"}


def edit(subject: Subject, rng: Random) -> AnswerEdit:
    """Gives all amounts of money another currency, or all quantities of one unit another unit."""
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


FAULT = Fault("value", "A quantity in the answer has the right digits and a wrong unit.", edit)

"""Faults of the family ``value``: a value in the answer is fabricated."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random

from pandaeval_lab.drill.fault import Fault
from pandaeval_lab.drill.faults._places import AMOUNT, DATE, IDENTIFIER, URL, replaced, scrambled


def other_amount(old: str, rng: Random) -> str:
    places = len(old.partition(".")[2])
    new = float(old.replace(",", "")) * rng.choice((rng.uniform(0.5, 0.9), rng.uniform(1.1, 2.0))) + 1
    return f"{new:,.{places}f}" if "," in old else f"{new:.{places}f}"


def other_date(old: str, rng: Random) -> str:
    """Return another date, weeks away, in the same notation."""
    days = timedelta(rng.randint(9, 90))
    if old[0].isdigit():
        return (date.fromisoformat(old) + days).isoformat()
    moved = datetime.strptime(f"{old} 2024", "%B %d %Y") + days
    return f"{moved:%B} {moved.day}"


def other_address(old: str, rng: Random) -> str:
    """Return the address with another host."""
    host = f"{rng.choice(('harbour', 'lumen', 'quarry'))}{rng.randint(100, 999)}"
    if "@" in old:
        return f"{old.partition('@')[0]}@{host}.example"
    scheme, _, rest = old.partition("://")
    return f"{scheme}://{host}.example/{rest.partition('/')[2]}"


FAULTS = {
    "invented_amount": Fault(
        "value", "The answer has an amount of money that the session lacks.", replaced(AMOUNT, "amount", other_amount)
    ),
    "invented_date": Fault(
        "value", "The answer has a date that the session lacks.", replaced(DATE, "date", other_date)
    ),
    "invented_identifier": Fault(
        "value", "The answer has an identifier that the session lacks.", replaced(IDENTIFIER, "identifier", scrambled)
    ),
    "invented_url": Fault(
        "value", "The answer has a web or mail address that the session lacks.", replaced(URL, "address", other_address)
    ),
}

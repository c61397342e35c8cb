"""A date in the answer is made up."""

from datetime import date, timedelta
from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import DATE, replaced


def other_date(old: str, rng: Random) -> str:
    """Another day some weeks away, written alike."""
    if old[0].isdigit():
        return (date.fromisoformat(old) + timedelta(days=rng.randint(9, 90))).isoformat()
    month, day = old.split()
    return f"{month} {(int(day) + rng.randint(2, 25)) % 28 + 1}"


FAULT = Fault(
    "value",
    "The answer names a date that stands nowhere.",
    lambda subject, rng: replaced(subject, rng, DATE, "date", other_date),
)

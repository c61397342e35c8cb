"""A date in the answer is the day after."""

from datetime import date, timedelta
from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import DATE, replaced


def next_day(old: str, rng: Random) -> str:
    """The day after, or before at a month's end, written alike."""
    if old[0].isdigit():
        return (date.fromisoformat(old) + timedelta(days=rng.choice((1, -1)))).isoformat()
    month, day = old.split()
    return f"{month} {int(day) + (1 if int(day) < 28 else -1)}"


FAULT = Fault(
    "value",
    "A date in the answer is off by one day, and stands nowhere.",
    lambda subject, rng: replaced(subject, rng, DATE, "date", next_day),
)

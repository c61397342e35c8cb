"""A time of day in the answer is made up."""

from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import TIME, replaced


def other_time(old: str, rng: Random) -> str:
    """Some hours and minutes away, written alike."""
    hour, minute = (int(each) for each in old.split(":"))
    most = 12 if hour <= 12 else 24
    return (
        f"{(hour + rng.randint(1, 9)) % most or most - 1:0{old.index(':')}d}:{(minute + rng.randint(3, 55)) % 60:02d}"
    )


FAULT = Fault(
    "value",
    "The answer names a time of day that stands nowhere.",
    lambda subject, rng: replaced(subject, rng, TIME, "time of day", other_time),
)

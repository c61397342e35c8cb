"""An amount of money in the answer is made up."""

from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import AMOUNT, replaced


def other_amount(old: str, rng: Random) -> str:
    """Between half and twice as much, written alike."""
    places = len(old.partition(".")[2])
    new = float(old.replace(",", "")) * rng.choice((rng.uniform(0.5, 0.9), rng.uniform(1.1, 2.0))) + 1
    return f"{new:,.{places}f}" if "," in old else f"{new:.{places}f}"


FAULT = Fault(
    "value",
    "The answer names an amount of money that stands nowhere.",
    lambda subject, rng: replaced(subject, rng, AMOUNT, "amount", other_amount),
)

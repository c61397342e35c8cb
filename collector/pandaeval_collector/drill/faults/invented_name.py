"""A name in the answer is made up."""

from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import NAME, replaced

_FIRST = ("Marlow", "Ottilie", "Thaddeus", "Perpetua", "Caspian", "Ingeborg")
_LAST = ("Quist", "Vandersloot", "Abernethy", "Okonjo", "Szymborska", "Delacroix")


def other_name(old: str, rng: Random) -> str:
    """A name that is rare."""
    return f"{rng.choice(_FIRST)} {rng.choice(_LAST)}"


FAULT = Fault(
    "value",
    "The answer names somebody or something that nobody mentioned.",
    lambda subject, rng: replaced(subject, rng, NAME, "name", other_name),
)

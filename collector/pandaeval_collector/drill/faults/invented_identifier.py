"""An identifier in the answer is made up."""

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import IDENTIFIER, replaced, scrambled

FAULT = Fault(
    "value",
    "The answer names an identifier that stands nowhere.",
    lambda subject, rng: replaced(subject, rng, IDENTIFIER, "identifier", scrambled),
)

"""An address on the net in the answer is made up."""

from random import Random

from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.faults._values import URL, replaced


def other_address(old: str, rng: Random) -> str:
    """Another host, else the same."""
    host = f"{rng.choice(('harbour', 'lumen', 'quarry'))}{rng.randint(100, 999)}"
    if "@" in old:
        return f"{old.partition('@')[0]}@{host}.example"
    scheme, _, rest = old.partition("://")
    return f"{scheme}://{host}.example/{rest.partition('/')[2]}"


FAULT = Fault(
    "value",
    "The answer names a web or mail address that stands nowhere.",
    lambda subject, rng: replaced(subject, rng, URL, "address", other_address),
)

"""Two calls take turns without end."""

from random import Random

from pandaeval_collector.drill.edits import CustomEdit, repeated
from pandaeval_collector.drill.fault import Fault
from pandaeval_collector.drill.subject import NotApplicableError, Subject


def edit(subject: Subject, rng: Random) -> CustomEdit:
    """Repeats two neighbouring calls of different tools, with their results, as a pair."""
    calls = subject.trace.tool_calls
    pairs = [at for at in range(len(calls) - 1) if calls[at].name != calls[at + 1].name]
    if not pairs:
        raise NotApplicableError("no two tools are called one after the other")
    at, rounds = rng.choice(pairs), rng.randint(3, 6)
    what = f"{calls[at].name} and {calls[at + 1].name} take turns {rounds} times"
    return repeated(subject.trace, [at, at + 1], rounds - 1, what)


FAULT = Fault("course", "Two calls take turns 3 to 6 times, with the same results.", edit)

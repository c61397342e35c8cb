"""What a dialect is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pandaeval_otel.dialects._reading import Reading
from pandaeval_otel.model.raw import RawLog, RawSpan


@runtime_checkable
class Dialect(Protocol):
    """One file, one object named ``DIALECT``. Pure: the same span gives the same reading.

    ``priority``: higher is asked first. Vendor dialects 50-90, the OTel GenAI conventions 40, generic fallbacks below.
    ``roots``: first segments of attribute keys (``"gen_ai"`` of ``gen_ai.system``) that make this dialect a candidate;
    ``scopes``: prefixes of instrumentation scope names that do; ``names``: prefixes of span names that do.
    A span is offered to every candidate whose hint matches; an empty set of hints means "offered every span".

    Two more hints may be given. ``marks``: attribute keys of which a span must have one, to be offered by its roots,
    for a dialect that shares them with others. ``only_logs``: ``True`` where it reads nothing but log records.

    And two more methods. ``silent(keys)``: whether it says nothing of any span with these attribute keys that has no
    events, log records or error status, nor a session on its resource; such spans are not offered to it.
    ``read_rest(span, logs, said)``: as ``read``, where those asked before have ``said`` something (which may be
    nothing); it may leave out what they said, but no note that it would have made.
    """

    name: str
    priority: int
    roots: frozenset[str]
    scopes: tuple[str, ...]
    names: tuple[str, ...]

    def read(self, span: RawSpan, logs: Sequence[RawLog]) -> Reading | None:
        """What this dialect understands of ``span`` and the log records of the same span id; ``None`` if nothing.
        Must not raise, whatever the attributes hold; a value that does not parse is left as the string it was."""
        ...

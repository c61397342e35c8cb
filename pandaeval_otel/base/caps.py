"""The caps on the objects that are made of one trace, and the count of those made so far.

An event of two bytes becomes some hundred bytes in memory: a few megabytes of them would end a process.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_ATTRIBUTES = 1024
"""Distinct keys of a span, event, link, log record or resource; the first ones are kept, each with its last value."""
MAX_EVENTS, MAX_LINKS = 4096, 1024
"""Of a span; the first ones are kept."""
MAX_NESTED = 1 << 15
"""Fields inside of one attribute's value, or of a body; a value with more of them is replaced by a remark."""
MAX_EVENT_ATTRIBUTES = 1 << 16
"""Attributes of all events of a span, and of all its links."""
MAX_ITEMS = 1 << 18
"""Resources, scopes and items of one request as it is stored."""
MAX_FIELDS = 1 << 21
"""Fields of one trace that are looked through one by one, some two seconds: those of its large messages."""
SMALL = 1 << 16
"""Messages of fewer bytes are not looked at: whatever they hold, there are at most half as many objects."""
NOTE = (
    f"read in part: a span or log record holds more than {MAX_ATTRIBUTES} attributes, {MAX_EVENTS} events, "
    f"{MAX_LINKS} links or {MAX_NESTED} values in one attribute"
)


class AboveCapError(Exception):
    """A small span holds more of something than its cap."""


class TooMuchError(ValueError):
    """So much in one trace that it is not made into objects."""


MAX_OBJECTS = 750_000
"""Spans, attributes, events, links, and values inside of attributes, of one trace: some 100 MB as objects. A trace of
ordinary attributes is as large as ``close.max_bytes`` lets it be before it has so many."""


@dataclass(slots=True)
class Room:
    """How much may still be made of one trace. ``cut``: whether something was left out of it."""

    left: int = MAX_OBJECTS
    cut: bool = False
    fields: int = MAX_FIELDS

    def look(self) -> None:
        """At one more field. Raises :class:`TooMuchError`."""
        self.fields -= 1
        if self.fields < 0:
            raise TooMuchError(f"the large spans and log records of the trace have more than {MAX_FIELDS} fields")

    def take(self, objects: int) -> None:
        """Raises :class:`TooMuchError`."""
        self.left -= objects
        if self.left < 0:
            raise TooMuchError(f"the trace holds more than {MAX_OBJECTS} attributes, events, links and values in them")

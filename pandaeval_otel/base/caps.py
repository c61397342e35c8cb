"""The caps on the objects that decoding one trace makes, and the count of those made so far.

An event of two bytes becomes some hundred bytes in memory: a few megabytes of them would exhaust a process.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_ATTRIBUTES = 1024
"""Most distinct keys of a span, event, link, log record or resource; the first ones are kept with their last values."""
MAX_EVENTS, MAX_LINKS = 4096, 1024
"""Most events and links of a span; the first ones are kept."""
MAX_NESTED = 1 << 15
"""Most fields inside one attribute's value, or a body; a remark replaces a value with more."""
MAX_EVENT_ATTRIBUTES = 1 << 16
"""Most attributes of all events of a span, and of all its links."""
MAX_ITEMS = 1 << 18
"""Most resources, scopes and items of one stored request."""
MAX_FIELDS = 1 << 21
"""Most fields of one trace's large messages, which are walked one by one: some two seconds."""
SMALL = 1 << 16
"""Bytes of a message up to which its fields are not walked: it makes at most half as many objects."""
NOTE = (
    f"read in part: a span or log record holds more than {MAX_ATTRIBUTES} attributes, {MAX_EVENTS} events, "
    f"{MAX_LINKS} links or {MAX_NESTED} values in one attribute"
)


class AboveCapError(Exception):
    """A small span exceeds a cap."""


class TooMuchError(ValueError):
    """A trace holds too much to be made into objects."""


MAX_OBJECTS = 750_000
"""Most spans, attributes, events, links and values inside attributes of one trace: some 100 MB as objects. A trace of
ordinary attributes reaches ``close.max_bytes`` first."""


@dataclass(slots=True)
class Room:
    """The objects that may still be made of one trace. ``cut``: whether anything was left out."""

    left: int = MAX_OBJECTS
    cut: bool = False
    fields: int = MAX_FIELDS

    def look(self) -> None:
        """Counts one more walked field. Raises :class:`TooMuchError`."""
        self.fields -= 1
        if self.fields < 0:
            raise TooMuchError(f"the large spans and log records of the trace have more than {MAX_FIELDS} fields")

    def take(self, objects: int) -> None:
        """Counts objects as made. Raises :class:`TooMuchError`."""
        self.left -= objects
        if self.left < 0:
            raise TooMuchError(f"the trace holds more than {MAX_OBJECTS} attributes, events, links and values in them")

"""What the parts of the store have in common."""

from __future__ import annotations

from pandaeval_collector.store.access import Access


class Part:
    """What one subject has in the store: reading on the caller's thread, writing on the writer's."""

    def __init__(self, access: Access) -> None:
        self._reader, self._scan, self._writer = access.reader, access.scan, access.writer
        self.clock = access.clock
        """The store's own time."""

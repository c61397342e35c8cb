"""The base class of the classes that each read and write one group of tables."""

from __future__ import annotations

from pandaeval_collector.store.access import Access


class TableGroup:
    """Access to the tables of one subject: reads run on the caller's thread, writes on the writer's thread."""

    def __init__(self, access: Access) -> None:
        self._reader, self._scan, self._writer = access.reader, access.scan, access.writer
        self.clock = access.clock
        """The store's own time."""

"""Addresses of the collector's page, for people to look at what an agent was told."""

from __future__ import annotations

from pandaeval_collector.show.api.client import Asker, AskError


class Links:
    """Makes links to one collector's page, which it is asked for once. On one event loop."""

    def __init__(self, asker: Asker, base: str | None) -> None:
        """``base``: where people reach the collector, such as ``http://127.0.0.1:4328``; ``None``: nowhere."""
        self._asker, self._base = asker, base
        self._paged: bool | None = None

    async def to(self, place: str) -> str:
        """Returns a sentence with the address of a place of the page, such as ``/trace/…``; empty without a page."""
        if self._base is None:
            return ""
        if self._paged is None:
            try:
                self._paged = (await self._asker.get("/overview"))["refresh_s"] is not None
            except AskError:
                return ""
        return f"People see it at {self._base.rstrip('/')}/#{place}" if self._paged else ""

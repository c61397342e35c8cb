"""Counts what the listeners do."""

from __future__ import annotations

from typing import Protocol


class ReceiverTelemetry(Protocol):
    """Counts requests. Called on the event loop, once per request; must not block or raise."""

    def request(self, door: str, outcome: str) -> None:
        """``door`` is ``grpc`` or ``http``; ``outcome`` one of ``accepted``, ``partial``, ``overloaded``, ``draining``,
        ``too_large``, ``malformed``, ``unauthenticated``, ``internal_error``."""
        ...


class NoDoorTelemetry:
    """Counts nothing."""

    def request(self, door: str, outcome: str) -> None:
        """Nothing."""

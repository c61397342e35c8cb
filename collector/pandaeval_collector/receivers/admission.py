"""Admission by bytes: what is being taken in at any moment never holds more memory than was set aside for it."""

from __future__ import annotations

from types import TracebackType

from pandaeval_collector.receivers._protocol import Draining, Overloaded, TooLarge

RETRY_AFTER_S = 1.0  # the SDKs give up after 10 s in total, so a longer hint would make them drop the spans


class Admission:
    """A budget of ``max_bytes`` decompressed bytes, shared by all doors. One event loop; nothing waits: what does
    not fit is refused, and the sender comes back.

    ``draining``: set it to refuse everything with :class:`Draining` (while starting and while shutting down).
    ``in_flight``: bytes reserved now. ``peak``: most bytes ever reserved. ``refused``: reservations refused so far.
    """

    def __init__(self, max_bytes: int, *, draining: bool = False) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self.max_bytes = max_bytes
        self.draining = draining
        self.in_flight = 0
        self.peak = 0
        self.refused = 0

    @classmethod
    def beside_reading(cls, max_bytes: int, read_bytes: int) -> Admission:
        """What is left of ``max_bytes`` for requests that are in, where ``read_bytes`` may be on their way in over
        gRPC; at least half. It begins with ``draining``."""
        return cls(max(max_bytes - read_bytes, max_bytes // 2), draining=True)

    def reserve(self, size: int = 0) -> Reservation:
        """``async with admission.reserve(n) as reservation:`` holds ``n`` bytes until the end of the block. Entering
        raises :class:`Draining`, :class:`Overloaded` (come back) or :class:`TooLarge` (can never fit)."""
        return Reservation(self, size)

    def _take(self, size: int, total: int) -> None:
        if self.draining:
            self.refused += 1
            raise Draining("the collector is starting or shutting down")
        if total > self.max_bytes:
            self.refused += 1
            raise TooLarge(f"needs more than the {self.max_bytes} bytes set aside for requests")
        if self.in_flight + size > self.max_bytes:
            self.refused += 1
            raise Overloaded(f"{self.in_flight} of {self.max_bytes} bytes for requests are in use", RETRY_AFTER_S)
        self.in_flight += size
        self.peak = max(self.peak, self.in_flight)

    def _give_back(self, size: int) -> None:
        self.in_flight -= size


class Reservation:
    """Bytes held by one request. ``size`` is how many."""

    __slots__ = ("_admission", "size")

    def __init__(self, admission: Admission, size: int) -> None:
        self._admission = admission
        self.size = size

    def grow(self, size: int) -> None:
        """Hold ``size`` bytes more; for bodies whose size shows only while they arrive. Raises as ``reserve`` does,
        and then holds what it held before."""
        self._admission._take(size, self.size + size)
        self.size += size

    async def __aenter__(self) -> Reservation:
        self._admission._take(self.size, self.size)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission._give_back(self.size)

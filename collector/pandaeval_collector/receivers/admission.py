"""Authentication, and a memory budget for requests in progress."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from pandaeval_collector.receivers import Draining, Overloaded, TooLarge

UNAUTHENTICATED_MESSAGE = "send the header 'authorization: Bearer <token>' with the token of this collector"
_PATIENCE_S, _PACE = 1.0, 256 * 1024
"""Without free budget, a body is dropped if it brought fewer bytes per second since the last check."""
RETRY_AFTER_S = 1.0  # the SDKs give up after 10 s in total, so a longer hint would make them drop the spans


def is_authorised(header: str | bytes | None, token: str) -> bool:
    """Return whether an ``authorization`` header carries ``token``, in constant time."""
    if header is None:
        return False
    given = header.encode("utf-8", "replace") if isinstance(header, str) else header
    scheme, _, credentials = given.partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(credentials.strip(), token.encode())


def is_logged_in(method: str, headers: Mapping[bytes, bytes], token: str) -> bool:
    """Return whether a browser sends ``token`` as its password. Changes must also come from our own page."""
    scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
    try:
        _, _, password = base64.b64decode(credentials.strip(), validate=True).partition(b":")
    except binascii.Error:
        return False
    if scheme.lower() != b"basic" or not hmac.compare_digest(password, token.encode()):
        return False
    if method in ("GET", "HEAD"):
        return True
    if b"sec-fetch-site" in headers:
        return headers[b"sec-fetch-site"] == b"same-origin"
    _, _, origin = headers.get(b"origin", b"").partition(b"://")
    return origin != b"" and origin == headers.get(b"host")


class Admission:
    """A budget of ``max_bytes`` decompressed bytes for all receivers, on one event loop.

    ``draining``: refuse everything with :class:`Draining`. ``in_flight``: reserved bytes. ``peak``: their maximum.
    ``refused``: refusals.
    """

    def __init__(self, max_bytes: int, *, draining: bool = False) -> None:
        if max_bytes <= 0:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self.max_bytes, self.draining = max_bytes, draining
        self.in_flight = self.peak = self.refused = 0
        self._arriving: dict[asyncio.Task[Any], _Body] = {}
        self._pushed_out: set[asyncio.Task[Any]] = set()

    @classmethod
    def beside_reading(cls, max_bytes: int, read_bytes: int) -> Admission:
        """Make a draining budget of ``max_bytes`` less ``read_bytes``, at least half."""
        return cls(max(max_bytes - read_bytes, max_bytes // 2), draining=True)

    def reserve(self, size: int = 0) -> Reservation:
        """Reserve ``n`` bytes in ``async with admission.reserve(n) as reservation:``.

        Raises :class:`Draining`, :class:`Overloaded` or :class:`TooLarge`.
        """
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
            # Slow bodies are ended, oldest first, until there is room for a returning sender.
            now = asyncio.get_running_loop().time()
            for task, body in self._arriving.items():
                if size > 0 and task not in self._pushed_out and body.is_slow(now):
                    self._pushed_out.add(task)
                    task.cancel()
                    size -= body.reservation.size
            raise Overloaded(f"{self.in_flight} of {self.max_bytes} bytes for requests are in use", RETRY_AFTER_S)
        self.in_flight += size
        self.peak = max(self.peak, self.in_flight)


class Reservation:
    __slots__ = ("_admission", "size")

    def __init__(self, admission: Admission, size: int) -> None:
        self._admission = admission
        self.size = size

    def grow(self, size: int) -> None:
        """Reserve ``size`` more bytes. Raises as ``reserve`` and then keeps the old size."""
        self._admission._take(size, self.size + size)
        self.size += size

    @contextlib.contextmanager
    def arrives(self) -> Iterator[None]:
        """Mark the block in which the body arrives. Raises :class:`Overloaded` if it is slow."""
        admission, task = self._admission, asyncio.current_task()
        assert task is not None
        admission._arriving[task] = _Body(self, asyncio.get_running_loop().time())
        try:
            yield
        except asyncio.CancelledError:
            if task not in admission._pushed_out:
                raise
            task.uncancel()
            raise Overloaded("the body comes slowly, and others need its room", RETRY_AFTER_S) from None
        finally:
            admission._pushed_out.discard(task)
            del admission._arriving[task]

    async def __aenter__(self) -> Reservation:
        self._admission._take(self.size, self.size)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.in_flight -= self.size


@dataclass(slots=True)
class _Body:
    reservation: Reservation
    seen_at: float
    seen: int = 0

    def is_slow(self, now: float) -> bool:
        """Return whether the body was too slow since the last check; ``False`` within a second of it."""
        took = now - self.seen_at
        if took < _PATIENCE_S:
            return False
        came = self.reservation.size - self.seen
        self.seen_at, self.seen = now, self.reservation.size
        return came < took * _PACE

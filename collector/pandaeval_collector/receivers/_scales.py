"""Requests are weighed before they are parsed: what would be too many objects is refused, what would be many is charged
for, and what would take long is told apart."""

from __future__ import annotations

import asyncio

from pandaeval_collector.receivers._protocol import Malformed, TooMany
from pandaeval_collector.receivers.admission import Reservation
from pandaeval_otel.weight import SUBMISSION, BrokenBytesError, Kind, estimate, resources_and_items, upper_items

DEFAULT_MAX_ITEMS = 200_000
_ITEM_BYTES = 400
"""What a request takes for each item while it is taken apart and stored; measured, 200 to 400."""
_UNWEIGHED = 16 * 1024
"""Requests up to here are taken apart within 0.1 s whatever they hold."""
_SCANNED_FROM = 1 << 20
"""Below it the attributes of a request cannot be too many; its spans can, and they are counted in less time."""
_COPIES = 2
"""Of a request that is scanned, besides its own bytes: as parsed, or as the chunks that are stored."""
_LARGE_BYTES, _LARGE_ITEMS = 512 * 1024, 5_000
"""From here on a request holds up the event loop, and goes to a thread: up to here some 50 ms."""


class Scales:
    """Weighs requests against ``max_items``, see :mod:`pandaeval_otel.weight`."""

    def __init__(self, max_items: int = DEFAULT_MAX_ITEMS) -> None:
        self._max_items = max_items

    async def weigh(self, kind: Kind, request: bytes, reservation: Reservation) -> bool:
        """Whether an OTLP request is a large one. ``reservation`` grows by what its objects take. Raises
        :class:`TooMany`, :class:`Malformed`, and what ``reservation.grow`` raises."""
        if len(request) <= _UNWEIGHED:
            return False
        try:
            if len(request) > _SCANNED_FROM:
                reservation.grow(_COPIES * len(request))
                items = await asyncio.to_thread(estimate, request, kind, self._max_items)
            else:
                items = resources_and_items(request)
        except BrokenBytesError as error:
            raise Malformed(f"not a protobuf request: {error}") from None
        return self._charge(items, len(request), reservation)

    async def weigh_submission(self, request: bytes, reservation: Reservation) -> bool:
        """The same for a ``SubmitTracesRequest``."""
        if len(request) <= _UNWEIGHED // 2:
            return False
        try:
            if len(request) > _SCANNED_FROM:
                reservation.grow(_COPIES * len(request))
                items = await asyncio.to_thread(estimate, request, SUBMISSION, self._max_items)
            else:
                items = upper_items(request, SUBMISSION, self._max_items)
        except BrokenBytesError as error:
            raise Malformed(f"not a protobuf request: {error}") from None
        return self._charge(items, len(request), reservation)

    def _charge(self, items: int, size: int, reservation: Reservation) -> bool:
        if items > self._max_items:
            # Counting ends at the limit: how many there are is not known, and not worth knowing.
            raise TooMany(
                f"{size} bytes hold more than {self._max_items} items (server.max_request_items): spans or records, "
                "resources and scopes, and a tenth for each attribute, value, event or link; send smaller batches"
            )
        reservation.grow(items * _ITEM_BYTES)
        return size > _LARGE_BYTES or items > _LARGE_ITEMS

"""Daily judge costs in UTC days, which survive restarts. Money is reserved before a call."""

from __future__ import annotations

import math
import sqlite3
from datetime import UTC, datetime

from pandaeval_collector.store.table import StoreTable, written

_CENT = 1e-9
"""Tolerance in US dollars for comparing sums."""
_DAY_S = 86_400.0
_BEGIN = "INSERT OR IGNORE INTO spending VALUES (?, 0, 0)"


class Spending(StoreTable):
    def today(self, now: float) -> float:
        """Return a time of the budget's day. A clock less than two days behind keeps the current day."""
        (newest,) = self._row("SELECT substr(max(day), 1, 10) FROM spending")
        if newest is None or not _day(now) < newest <= _day(now + 2 * _DAY_S):
            return now
        return datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp()

    @written
    def reserve(self, connection: sqlite3.Connection, usd: float, most: float | None, now: float) -> bool:
        """Reserve money for a call.

        Returns ``False`` if less is left. ``most``: US dollars per day, ``None``: no limit.
        """
        day = _day(now)
        connection.execute(_BEGIN, (day,))
        (used,) = connection.execute("SELECT reserved + settled FROM spending WHERE day = ?", (day,)).fetchone()
        if most is not None and used + usd > most + _CENT:
            return False
        connection.execute("UPDATE spending SET reserved = reserved + ? WHERE day = ?", (usd, day))
        return True

    @written
    def settle(self, connection: sqlite3.Connection, reserved: float, spent: float, reserved_at: float) -> None:
        """Replace a reservation by the cost. A negative or non-finite cost counts as the reservation."""
        day = _day(reserved_at)
        cost = spent if 0 <= spent < math.inf else reserved
        connection.execute(_BEGIN, (day,))
        change = "UPDATE spending SET reserved = max(0, reserved - ?), settled = settled + ? WHERE day = ?"
        connection.execute(change, (reserved, cost, day))

    @written
    def settle_all(self, connection: sqlite3.Connection) -> None:
        """Count a dead process's reservations as spent."""
        connection.execute("UPDATE spending SET settled = settled + reserved, reserved = 0 WHERE reserved > 0")

    def spent(self, now: float) -> float:
        return float(self._row("SELECT total(reserved + settled) FROM spending WHERE day = ?", _day(now))[0])


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()

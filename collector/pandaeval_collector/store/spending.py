"""What judges cost, day by day.

An amount is set aside (``reserved``) before a call is made, and replaced by the cost of the call (``settled``) after
it. A restart does not reset the day's spending. Days are those of the machine's clock, UTC.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from pandaeval_collector.store.table import StoreTable, written

Amounts = tuple[float, float]
"""US dollars and tokens."""
Most = tuple[float | None, float | None]
"""Limits of US dollars and tokens; ``None``: no limit."""

_CENT = 1e-9
"""Sums of dollars are compared with this much tolerance."""
_DAY_S = 86_400.0


class Spending(StoreTable):
    """The spending of one store."""

    def today(self, now: float) -> float:
        """Returns a time of the day (UTC) whose budget is to be used at ``now`` of the machine's clock. A clock that
        was set back, by less than two days, stays with the day that was begun: no day is paid for twice."""
        (newest,) = self._row("SELECT substr(max(day), 1, 10) FROM spending")
        if newest is None or not _day(now) < newest <= _day(now + 2 * _DAY_S):
            return now
        return datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp()

    @written
    def reserve(self, connection: sqlite3.Connection, amounts: Amounts, most: Most, now: float) -> bool:
        """Sets money and tokens of the day (UTC) aside for one call, both or neither. Returns ``False`` when that is
        more than is left."""
        keys = _begun(connection, now)
        for key, amount, limit in zip(keys, amounts, most, strict=True):
            if limit is None:
                continue
            query = "SELECT reserved + settled FROM spending WHERE day = ?"
            if connection.execute(query, (key,)).fetchone()[0] + amount > limit + _CENT:
                return False
        connection.executemany(
            "UPDATE spending SET reserved = reserved + ? WHERE day = ?", zip(amounts, keys, strict=True)
        )
        return True

    @written
    def settle(self, connection: sqlite3.Connection, reserved: Amounts, spent: Amounts, reserved_at: float) -> None:
        """Replaces a reservation by the cost of the call. A cost that is negative or not finite counts as what was
        reserved, so that no cost refills a day's budget."""
        counted = [cost if 0 <= cost < math.inf else most for cost, most in zip(spent, reserved, strict=True)]
        connection.executemany(
            "UPDATE spending SET reserved = max(0, reserved - ?), settled = settled + ? WHERE day = ?",
            zip(reserved, counted, _begun(connection, reserved_at), strict=True),
        )

    @written
    def settle_all(self, connection: sqlite3.Connection) -> None:
        """Counts what a process that died had set aside as spent: its calls may have been made."""
        connection.execute("UPDATE spending SET settled = settled + reserved, reserved = 0 WHERE reserved > 0")

    def spent(self, now: float) -> float:
        """Returns the US dollars of the day (UTC) of ``now``, reservations included."""
        return float(self._row("SELECT total(reserved + settled) FROM spending WHERE day = ?", _keys(now)[0])[0])


def _begun(connection: sqlite3.Connection, now: float) -> Sequence[str]:
    """Returns the keys of the day of ``now``, which have rows from now on."""
    keys = _keys(now)
    connection.executemany("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", [(key,) for key in keys])
    return keys


def _keys(now: float) -> tuple[str, str]:
    """Returns the keys of a day's dollars and of its tokens; both sort before those of the next day."""
    day = _day(now)
    return day, f"{day} tokens"


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()

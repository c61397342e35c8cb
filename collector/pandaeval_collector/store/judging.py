"""What judges cost, day by day, and the verdicts that they gave: durable, so that a restart does not reset the day's
spending.

An amount is set aside (``reserved``) before a call is made, and replaced by what the call did cost (``settled``) after
it. Days are those of the machine's clock, UTC.
"""

from __future__ import annotations

import math
import sqlite3
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any

from pandaeval_collector.store.table import Table


# Verdicts that judges gave, under the hash of what they were given for: a restart pays for none of them twice.
class Verdicts(Table):
    """The verdicts of one store."""

    def recall(self, key: str) -> bytes | None:
        """Returns the verdict that was kept under ``key``; ``None`` where there is none."""
        row = self._row("SELECT body FROM verdicts WHERE key = ?", key)
        return None if row is None else bytes(row[0])

    def keep(self, key: str, body: bytes) -> Future[Any]:
        """Remembers a verdict under the hash of what it was given for."""
        return self._writer.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", key, self._clock.calendar(), body
        )


_DAY_S = 86_400.0
_CENT = 1e-9
"""Sums of dollars are compared with this much tolerance."""

Amounts = tuple[float, float]
"""US dollars and tokens."""
Most = tuple[float | None, float | None]
"""Limits of US dollars and tokens; ``None``: no limit."""


class Spending(Table):
    """The spending of one store."""

    def today(self, now: float) -> float:
        """Returns a time of the day (UTC) whose budget is to be used at ``now`` of the machine's clock. A clock that
        was set back, by less than two days, stays with the day that was begun: no day is paid for twice."""
        (newest,) = self._row("SELECT substr(max(day), 1, 10) FROM spending")
        if newest is None or not _day(now) < newest <= _day(now + 2 * _DAY_S):
            return now
        return datetime.fromisoformat(newest).replace(tzinfo=UTC).timestamp()

    def reserve(self, amounts: Amounts, most: Most, now: float) -> Future[bool]:
        """Sets money and tokens of the day (UTC) aside for one call, both or neither; the future holds ``False`` when
        that is more than is left."""
        keys = _keys(now)

        def work(connection: sqlite3.Connection) -> bool:
            connection.executemany("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", [(key,) for key in keys])
            for key, amount, limit in zip(keys, amounts, most, strict=True):
                query = "SELECT reserved + settled FROM spending WHERE day = ?"
                if limit is not None and connection.execute(query, (key,)).fetchone()[0] + amount > limit + _CENT:
                    return False
            connection.executemany(
                "UPDATE spending SET reserved = reserved + ? WHERE day = ?", zip(amounts, keys, strict=True)
            )
            return True

        return self._writer.submit(work)

    def settle(self, reserved: Amounts, spent: Amounts, reserved_at: float) -> Future[None]:
        """Replaces a reservation by what the call did cost; a cost that is negative or not finite counts as what was
        reserved, so that no cost refills a day's budget."""
        keys = _keys(reserved_at)
        counted = [cost if 0 <= cost < math.inf else most for cost, most in zip(spent, reserved, strict=True)]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", [(key,) for key in keys])
            connection.executemany(
                "UPDATE spending SET reserved = max(0, reserved - ?), settled = settled + ? WHERE day = ?",
                zip(reserved, counted, keys, strict=True),
            )

        return self._writer.submit(work)

    def settle_all(self) -> Future[int]:
        """Counts what a process that died had set aside as spent: its calls may have been made."""
        return self._writer.execute("UPDATE spending SET settled = settled + reserved, reserved = 0 WHERE reserved > 0")

    def spent(self, now: float) -> float:
        """Returns the US dollars of the day (UTC) of ``now``, reservations included."""
        return float(self._row("SELECT total(reserved + settled) FROM spending WHERE day = ?", _keys(now)[0])[0])


def _day(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).date().isoformat()


def _keys(now: float) -> tuple[str, str]:
    """Returns the keys of a day's dollars and of its tokens; both sort before those of the next day."""
    day = _day(now)
    return day, f"{day} tokens"

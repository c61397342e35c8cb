"""A disk that fails on demand."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

import pandaeval_collector.store.connection as connection_module
import pandaeval_collector.store.store as store_module
from pandaeval_collector.store.connection import connect


class FailingDisk:
    """A SQLite connection with planned failures, such as ``{"COMMIT": 2}`` by statement prefix."""

    def __init__(
        self, connection: sqlite3.Connection, failures: dict[str, int], error: sqlite3.Error | None = None
    ) -> None:
        self._connection, self._failures = connection, failures
        self._error = error or sqlite3.OperationalError("disk I/O error")

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        for beginning, left in self._failures.items():
            if left and statement.startswith(beginning):
                self._failures[beginning] = left - 1
                raise self._error
        return self._connection.execute(statement, *arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def failing_disk(monkeypatch: pytest.MonkeyPatch, error: sqlite3.Error | None = None) -> dict[str, int]:
    """Return the shared failures of stores opened from now on."""
    failures: dict[str, int] = {}
    for module in (connection_module, store_module):
        monkeypatch.setattr(
            module, "connect", lambda *args, **options: FailingDisk(connect(*args, **options), failures, error)
        )
    return failures

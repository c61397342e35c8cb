"""The tables of the store, and the migrations that bring an older file to the current schema.

Each module holds some consecutive steps, as SQL scripts. A step that was released is never changed: a new one is added
at the end.
"""

from __future__ import annotations

import sqlite3

from pandaeval_collector.store.schema import beginning, intake, jobs, judging, listed, numbers, people, runs

_IN_ORDER = (beginning, judging, numbers, intake, jobs, people, listed, runs)
MIGRATIONS: tuple[str, ...] = (
    *(step for module in _IN_ORDER for step in module.STEPS),
    *(step for steps in (listed.LATER, people.DOORS, intake.CHECKSUMS, listed.CAUSES) for step in steps),
    *numbers.CHECKSUMS,
)
"""The step at index *n* brings a file from version *n* to *n* + 1."""


class NewerStoreError(RuntimeError):
    """The file was written by a newer version of this program."""


def migrate(connection: sqlite3.Connection) -> None:
    """Brings the file to the current schema, one version per transaction. Raises :class:`NewerStoreError`."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise NewerStoreError(
            f"the store has schema version {version}, this program knows {len(MIGRATIONS)}: use the newer program, "
            "or point store.path at another directory"
        )
    for number in range(version, len(MIGRATIONS)):
        connection.executescript(f"BEGIN; {MIGRATIONS[number]} PRAGMA user_version = {number + 1}; COMMIT;")

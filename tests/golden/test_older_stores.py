"""Stores that earlier versions of the program wrote: each opens, keeps what was said, and is gone on with.

``stores/schema-N.db.xz``: three traces decided and their session scored, one decided in an open session, two undecided;
made by the code of that schema version from ``Composer(5, sessions=2)``.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.store.checking import damages
from pandaeval_collector.store.connection import connect
from pandaeval_collector.store.schema import MIGRATIONS
from support.collector import standing
from support.database import open_database
from support.line import RunningLine
from support.made_traces import Composer

STORES = Path(__file__).with_name("stores")
VERSIONS = sorted(int(file.name.split("-")[1].split(".")[0]) for file in STORES.glob("schema-*.db.xz"))


def test_the_two_versions_before_this_one_are_here() -> None:
    assert {len(MIGRATIONS) - 1, len(MIGRATIONS) - 2} <= set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_opens_and_is_gone_on_with(tmp_path: Path, version: int) -> None:
    file = tmp_path / "pandaeval.db"
    file.write_bytes(lzma.decompress((STORES / f"schema-{version}.db.xz").read_bytes()))
    with open_database(file) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (version,)
        said = dict(database.execute("SELECT seq, body FROM results"))
        assert said
    traces = Composer(5, sessions=2)
    made = [traces.trace(4) for _ in range(6)]
    async with RunningLine(tmp_path) as line:
        assert (line.pipeline.open_traces, line.pipeline.open_sessions) == (2, 1)
        await line.settle()
        rows = line.store.results_after(0, 10_000)
        assert {row.seq: row.body for row in rows if row.seq in said} == said
        found = standing([orjson.loads(row.body) for row in rows])
        assert {unit for unit, metric in found if metric == "trace.coherence"} == {each.trace_id.hex() for each in made}
        assert {unit for unit, metric in found if metric.startswith("session.")} == {
            each.session for each in made if each.session is not None
        }
    connection = connect(file, "off", read_only=True)
    try:
        assert list(damages(connection)) == []
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    finally:
        connection.close()

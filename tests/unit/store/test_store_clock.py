"""Clock changes with and without a collector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from pandaeval_collector.app import outlets as module
from pandaeval_collector.app.outlets import Outlets
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import load
from pandaeval_collector.exporters import Surroundings
from pandaeval_collector.store import Chunk, DecidedTrace, JobRow, ResultRow, Store, WriteSet, outbox_batches
from pandaeval_collector.store.clock import StoreClock, stored_times
from support.database import open_database
from support.doors import until

HOUR, DAY = 3600.0, 86_400.0
NOW = 1_790_000_000.0
TRACE = b"\x01" * 16


class Machine:
    """Manual clocks and successive stores."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.wall, self.steady = NOW, 500.0
        self.store = self._open()

    def runs(self, seconds: float) -> None:
        """Advance time with a running collector."""
        self.wall += seconds
        self.steady += seconds
        self.store.keep_time().result()

    def jumps(self, seconds: float) -> None:
        """Set the clock."""
        self.wall += seconds

    def is_down(self, seconds: float) -> None:
        """Stop the collector and reboot."""
        self.store.close()
        self.wall += seconds
        self.steady = 3.0
        self.store = self._open()

    def _open(self) -> Store:
        return Store(self._folder, "off", clock=StoreClock(lambda: self.wall, lambda: self.steady))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.store.close()


Event = Callable[[Machine], None]
JUMPS: list[Event] = [
    lambda machine: machine.jumps(3 * DAY),
    lambda machine: machine.jumps(-3 * DAY),
    lambda machine: machine.jumps(3650 * DAY),
    lambda machine: machine.is_down(6 * DAY),
    lambda machine: machine.is_down(-2 * DAY),
]
whatever_happens = pytest.mark.parametrize("event", JUMPS)


class TestClock:
    def test_a_new_store_says_what_the_machine_says(self, machine: Machine) -> None:
        machine.runs(10)
        assert machine.store.clock.now() == (NOW + 10, NOW + 10, NOW + 10)

    @whatever_happens
    def test_it_neither_jumps_nor_goes_back(self, machine: Machine, event: Event) -> None:
        before = machine.store.clock.now()
        event(machine)
        after = machine.store.clock.now()
        assert after.running == before.running
        assert before.calendar <= after.calendar <= before.calendar + DAY
        machine.runs(7)
        assert machine.store.clock.running() == before.running + 7
        assert machine.store.clock.calendar() == after.calendar + 7

    def test_an_ordinary_night_counts_for_the_calendar(self, machine: Machine) -> None:
        machine.is_down(9 * HOUR)
        assert machine.store.clock.now() == (NOW + 9 * HOUR, NOW + 9 * HOUR, NOW)

    def test_a_process_that_was_killed_is_followed_from_what_was_kept(self, machine: Machine, tmp_path: Path) -> None:
        machine.runs(100)
        with open_database(tmp_path / "pandaeval.db") as other:
            assert (kept := stored_times(other))
            assert kept.running == NOW + 100

    def test_a_new_store_has_a_clock_from_the_beginning(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "new", "off")
        store.put("probe", "").result()  # what was queued before it is committed
        assert store.reads.get("clock") is not None
        store.close()


class TestUnsent:
    @pytest.fixture(autouse=True)
    def _brisk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_TIDY_S", 0.01)
        monkeypatch.setattr(module, "_BOUND_EVERY", 1)

    async def left(self, machine: Machine) -> int:
        """Return waiting items after upkeep without a sink."""
        telemetry = Telemetry()
        config = load(None, {"PANDAEVAL_EXPORTERS__OTLP__LOGS__ENDPOINT": "127.0.0.1:1"})
        outlets = Outlets(config, Surroundings(machine.store, telemetry, {}))
        await outlets.start()
        seen = machine.store._writer.commits
        await until(lambda: machine.store._writer.commits > seen + 4)
        await outlets.stop()
        return machine.store.outbox.waiting("logs", 0)

    @whatever_happens
    async def test_results_outlive_it(self, machine: Machine, event: Event) -> None:
        machine.store.commit(WriteSet(outbox=[*outbox_batches("logs", [b"a", b"b"])])).result()
        event(machine)
        assert await self.left(machine) == 2

    @whatever_happens
    async def test_they_go_when_a_collector_has_tried_for_a_day(self, machine: Machine, event: Event) -> None:
        machine.store.commit(WriteSet(outbox=[*outbox_batches("logs", [b"a", b"b"])])).result()
        event(machine)
        machine.runs(DAY + 1)
        machine.store.commit(WriteSet(outbox=[*outbox_batches("logs", [b"c"])])).result()
        assert await self.left(machine) == 1


class TestForgetting:
    def put(self, store: Store) -> int:
        chunk = Chunk(store.next_chunk_id(), TRACE, False, 1, 5, b"spans")
        store.append([chunk]).result()
        row = DecidedTrace(TRACE, 1, False, "d", frozenset({b"12345678"}), (chunk.id,), 5)
        results = [ResultRow("r", TRACE.hex(), "trace.m", 1, b"{}")]
        store.commit(WriteSet(traces=[row], results=results)).result()
        store.verdicts.keep("k", b"v").result()
        return chunk.id

    def forget(self, store: Store) -> None:
        store.forget(600, 7 * DAY, store.clock.calendar()).result()

    @whatever_happens
    def test_results_and_verdicts_outlive_it(self, machine: Machine, event: Event) -> None:
        self.put(machine.store)
        event(machine)
        self.forget(machine.store)
        assert [row.id for row in machine.store.reads.results_after(0)] == ["r"]
        assert machine.store.verdicts.recall("k") == b"v"

    @whatever_happens
    def test_nothing_is_kept_for_longer_than_it_should(self, machine: Machine, event: Event) -> None:
        chunk = self.put(machine.store)
        event(machine)
        machine.runs(601)
        self.forget(machine.store)
        with pytest.raises(LookupError):
            machine.store.reads.chunks([chunk])
        machine.runs(7 * DAY)
        self.forget(machine.store)
        assert not machine.store.reads.results_after(0)
        assert machine.store.verdicts.recall("k") is None


class TestJobs:
    @whatever_happens
    def test_a_job_is_due_when_its_time_is_over(self, machine: Machine, event: Event) -> None:
        machine.store.commit(WriteSet(jobs=[JobRow("j", TRACE, "trace.m", 30.0, b"{}")])).result()
        event(machine)
        assert not self.leased(machine.store)
        machine.runs(31)
        assert self.leased(machine.store) == ["j"]

    def test_a_job_that_a_wrong_clock_put_off_waits_a_day_at_most(self, machine: Machine) -> None:
        machine.store.commit(WriteSet(jobs=[JobRow("j", TRACE, "trace.m", 400 * DAY, b"{}")])).result()
        machine.is_down(1.0)
        machine.store.jobs.release_all().result()
        machine.runs(DAY + 1)
        assert self.leased(machine.store) == ["j"]

    def leased(self, store: Store) -> list[str]:
        return [job.id for job in store.jobs.lease(store.clock.running(), 9).result()]


class TestBudget:
    def spend(self, machine: Machine, usd: float) -> bool:
        spending = machine.store.spending
        return spending.reserve(usd, 1.0, spending.today(machine.wall)).result()

    def test_a_clock_that_is_set_back_pays_for_no_day_twice(self, machine: Machine) -> None:
        assert self.spend(machine, 0.9)
        for back in (HOUR, DAY, 1.9 * DAY):
            machine.jumps(-back)
            assert not self.spend(machine, 0.2), "it is still the day that was begun"
            machine.jumps(back)
        machine.jumps(DAY)
        assert self.spend(machine, 0.9), "a new day is one"

    def test_a_future_that_was_none_stops_nothing(self, machine: Machine) -> None:
        assert self.spend(machine, 0.9)
        machine.jumps(400 * DAY)
        assert self.spend(machine, 0.9)
        machine.jumps(-400 * DAY)
        assert not self.spend(machine, 0.2), "what this day did cost is remembered"
        machine.jumps(DAY)
        assert self.spend(machine, 0.9)

    def test_forgetting_keeps_the_days_that_count(self, machine: Machine) -> None:
        assert self.spend(machine, 0.9)
        machine.jumps(-400 * DAY)
        machine.store.forget(600, DAY, NOW + 900 * DAY).result()
        machine.jumps(400 * DAY)
        assert not self.spend(machine, 0.2)
        for _ in range(100):
            machine.jumps(DAY)
            assert self.spend(machine, 0.9)
            machine.store.forget(600, DAY, machine.wall).result()
        with open_database(machine.store.path / "pandaeval.db") as other:
            assert other.execute("SELECT count(*) FROM spending").fetchone() == (31,)


def test_what_is_kept_is_readable(machine: Machine) -> None:
    assert orjson.loads(machine.store.clock.kept()) == {"wall": NOW, "calendar": NOW, "running": NOW}

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
from support.receivers import until

HOUR, DAY = 3600.0, 86_400.0
NOW = 1_790_000_000.0
TRACE = b"\x01" * 16


class Machine:
    """A machine with manual clocks; a restart opens a new store."""

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
    def test_a_new_store_uses_the_system_clock(self, machine: Machine) -> None:
        machine.runs(10)
        assert machine.store.clock.now() == (NOW + 10, NOW + 10, NOW + 10)

    @whatever_happens
    def test_the_store_clock_neither_jumps_nor_goes_back(self, machine: Machine, event: Event) -> None:
        before = machine.store.clock.now()
        event(machine)
        after = machine.store.clock.now()
        assert after.running == before.running
        assert before.calendar <= after.calendar <= before.calendar + DAY
        machine.runs(7)
        assert machine.store.clock.running() == before.running + 7
        assert machine.store.clock.calendar() == after.calendar + 7

    def test_a_night_of_downtime_counts_only_for_the_calendar_clock(self, machine: Machine) -> None:
        machine.is_down(9 * HOUR)
        assert machine.store.clock.now() == (NOW + 9 * HOUR, NOW + 9 * HOUR, NOW)

    def test_the_running_clock_is_saved_in_the_store(self, machine: Machine, tmp_path: Path) -> None:
        machine.runs(100)
        with open_database(tmp_path / "pandaeval.db") as other:
            assert (kept := stored_times(other))
            assert kept.running == NOW + 100

    def test_a_new_store_saves_its_clock_at_once(self, tmp_path: Path) -> None:
        store = Store(tmp_path / "new", "off")
        store.put("probe", "").result()  # earlier queued writes are committed first
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
    async def test_unsent_results_survive_clock_changes_and_downtime(self, machine: Machine, event: Event) -> None:
        machine.store.commit(WriteSet(outbox=[*outbox_batches("logs", [b"a", b"b"])])).result()
        event(machine)
        assert await self.left(machine) == 2

    @whatever_happens
    async def test_unsent_results_are_dropped_after_a_collector_ran_for_a_day(
        self, machine: Machine, event: Event
    ) -> None:
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
    def test_results_and_verdicts_survive_clock_changes_and_downtime(self, machine: Machine, event: Event) -> None:
        self.put(machine.store)
        event(machine)
        self.forget(machine.store)
        assert [row.id for row in machine.store.reads.results_after(0)] == ["r"]
        assert machine.store.verdicts.recall("k") == b"v"

    @whatever_happens
    def test_spans_results_and_verdicts_are_deleted_on_time_after_clock_changes(
        self, machine: Machine, event: Event
    ) -> None:
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
    def test_a_job_is_due_after_its_delay_of_running_time(self, machine: Machine, event: Event) -> None:
        machine.store.commit(WriteSet(jobs=[JobRow("j", TRACE, "trace.m", 30.0, b"{}")])).result()
        event(machine)
        assert not self.leased(machine.store)
        machine.runs(31)
        assert self.leased(machine.store) == ["j"]

    def test_a_restart_limits_a_much_too_long_job_delay_to_a_day(self, machine: Machine) -> None:
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

    def test_a_clock_set_back_does_not_renew_the_budget(self, machine: Machine) -> None:
        assert self.spend(machine, 0.9)
        for back in (HOUR, DAY, 1.9 * DAY):
            machine.jumps(-back)
            assert not self.spend(machine, 0.2), "the budget day has not changed"
            machine.jumps(back)
        machine.jumps(DAY)
        assert self.spend(machine, 0.9), "a new day has a new budget"

    def test_a_clock_temporarily_in_the_future_does_not_block_the_budget(self, machine: Machine) -> None:
        assert self.spend(machine, 0.9)
        machine.jumps(400 * DAY)
        assert self.spend(machine, 0.9)
        machine.jumps(-400 * DAY)
        assert not self.spend(machine, 0.2), "the cost of this day is remembered"
        machine.jumps(DAY)
        assert self.spend(machine, 0.9)

    def test_forgetting_keeps_the_costs_of_the_newest_31_days(self, machine: Machine) -> None:
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


def test_the_saved_clock_is_readable_json(machine: Machine) -> None:
    assert orjson.loads(machine.store.clock.kept()) == {"wall": NOW, "calendar": NOW, "running": NOW}

"""Schedules: new data, missed firings, no overlap."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.cron import next_time
from pandaeval_collector.runs.manager import check_cron, fire_due
from pandaeval_collector.runs.spec import RunSpec, choose
from pandaeval_collector.show.api.run_shapes import ScheduleShape
from pandaeval_collector.store import Store
from pandaeval_collector.store.runs import RunRow
from support.line import RunningPipeline
from support.made_traces import Composer

HOURLY = "0 * * * *"
BEGAN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC).timestamp()


class Firing:
    """A scheduler with a manual clock."""

    def __init__(self, store: Store) -> None:
        self.store, self.now = store, BEGAN

    async def at(self, hour: int, minute: int) -> list[RunRow]:
        self.now = datetime(2026, 3, 1, hour, minute, tzinfo=UTC).timestamp()
        return await fire_due(self.store, self.now)

    def end(self, run: RunRow) -> None:
        self.store.runs.begin(run.no).result()
        self.store.runs.end(run.no).result()

    def about(self, run: RunRow) -> int:
        """Return a run's trace count."""
        return len(choose(self.store, RunSpec.from_json(run.body), 0, run.upto)[0])


def test_cron_is_checked_and_read_in_utc() -> None:
    check_cron("*/5 * * * 1-5")
    for wrong in ("", "often", "* * * *", "61 * * * *", "* * * * * *", "@hourly", "* * 31 2 *"):
        with pytest.raises(UserError):
            check_cron(wrong)
    assert next_time("0 3 * * *", BEGAN) == datetime(2026, 3, 2, 3, tzinfo=UTC).timestamp()


async def test_a_schedule_that_never_fires_does_not_block_other_schedules(tmp_path: Path) -> None:
    assert next_time("0 0 31 2 *", BEGAN) is None
    async with RunningPipeline(tmp_path) as line:
        firing = Firing(line.store)
        await line.send(Composer(3).trace())
        await line.wait(20)
        for cron in ("0 0 31 2 *", HOURLY):  # an older version stored the first without validation
            line.store.schedules.add(cron, RunSpec(("trace.tool_loop",)).to_json(), BEGAN).result()
        assert len(await firing.at(13, 0)) == 1
        shown = [ScheduleShape.read(line.store.schedules, each) for each in line.store.schedules.all()]
        assert {each.cron: each.next_at is None for each in shown} == {"0 0 31 2 *": True, HOURLY: False}


async def test_a_firing_covers_the_traces_decided_since_the_last_firing(tmp_path: Path) -> None:
    async with RunningPipeline(tmp_path) as line:
        composer, firing = Composer(3), Firing(line.store)
        early = composer.trace()
        await line.send(early, early.spans[1:])
        await line.send(composer.trace())
        await line.wait(20)
        line.store.schedules.add(HOURLY, RunSpec(("trace.tool_loop",)).to_json(), BEGAN).result()
        assert await firing.at(12, 59) == []
        for _ in range(3):
            await line.send(composer.trace())
        await line.wait(20)
        (first,) = await firing.at(13, 0)
        assert firing.about(first) == 3, "traces from before the schedule are not included"
        firing.end(first)
        await line.send(early, early.spans[:1])
        await line.wait(400)
        (second,) = await firing.at(14, 0)
        assert firing.about(second) == 1, "a changed trace is included again"
        firing.end(second)
        (third,) = await firing.at(15, 0)
        assert firing.about(third) == 0


async def test_missed_firings_run_once_and_firings_do_not_overlap(tmp_path: Path) -> None:
    store = Store(tmp_path, "off")
    try:
        firing = Firing(store)
        schedule = store.schedules.add(HOURLY, RunSpec(("trace.tool_loop",)).to_json(), BEGAN).result()
        (late,) = await firing.at(17, 5)
        assert late.schedule == schedule.id
        assert await firing.at(17, 6) == []
        assert await firing.at(19, 0) == [], "the last run is still running"
        firing.end(late)
        (after,) = await firing.at(19, 1)
        firing.end(after)
        store.schedules.remove(schedule.id).result()
        assert await firing.at(23, 59) == []
    finally:
        store.close()

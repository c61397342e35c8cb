"""What a process that died leaves behind about the traces that it was deciding, and what the next one makes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from pandaeval_collector.pipeline.underway import FILE_NAME, HOPELESS, TOGETHER, UnderWay

from support.line import RunningLine, as_file
from support.made_traces import Composer, MadeTrace

A, B, C = (bytes(15) + bytes((n,)) for n in (1, 2, 3))


def left(folder: Path, *lives: Sequence[bytes], at: bool = False) -> UnderWay:
    """After processes that died while these were being decided, one after the other; with ``at`` while they worked on
    them themselves."""
    dead = contextlib.ExitStack()  # what a process that died never left
    for under_way in lives:
        life = UnderWay(folder)
        life.resume(lambda _: True)
        life.begin(under_way)
        if at:
            dead.enter_context(life.at(under_way))
    last = UnderWay(folder)
    last.resume(lambda _: True)
    dead.pop_all()
    return last


def test_who_was_under_way_at_a_death_is_a_suspect(tmp_path: Path) -> None:
    assert left(tmp_path, [A, B]).suspects == {A: 1, B: 1}


def test_a_death_is_counted_once(tmp_path: Path) -> None:
    assert left(tmp_path, [A, B], [], []).suspects == {A: 1, B: 1}


def test_dying_together_proves_little(tmp_path: Path) -> None:
    assert left(tmp_path, *[[A, B]] * 9).suspects == {A: TOGETHER, B: TOGETHER}


def test_dying_over_one_alone_proves_much(tmp_path: Path) -> None:
    last = left(tmp_path, [A, B], [A, B], *[[A]] * (HOPELESS - TOGETHER), at=True)
    assert (last.deaths(A), last.deaths(B), last.deaths(C)) == (HOPELESS, TOGETHER, 0)


def test_a_kill_while_it_waits_proves_nothing_however_often(tmp_path: Path) -> None:
    """As from outside, while another process understands it or its decision is committed."""
    assert left(tmp_path, *[[A]] * 9).suspects == {A: TOGETHER}
    life = left(tmp_path, [A])
    life.begin([A])
    with life.at([A]):
        pass
    assert left(tmp_path).suspects == {A: TOGETHER}


def test_who_is_decided_is_clear(tmp_path: Path) -> None:
    life = left(tmp_path, [A, B], [A])
    life.begin([A, B])
    life.end([A])
    life.end([B], decided=False)
    assert left(tmp_path).suspects == {B: 1}


def test_who_is_not_open_any_more_is_none(tmp_path: Path) -> None:
    left(tmp_path, [A, B])
    life = UnderWay(tmp_path)
    life.resume({A}.__contains__)
    assert life.suspects == {A: 1}


def test_a_process_that_ends_as_it_should_leaves_nothing(tmp_path: Path) -> None:
    life = left(tmp_path)
    life.begin([A])
    life.close()
    assert left(tmp_path).suspects == {}


@pytest.mark.parametrize(
    "text", ["", "\n\n", "zz now\n", f"{A.hex()[:9]} now", f"{A.hex()}", "\x00\xff", f"{A.hex()} x"]
)
def test_lines_that_are_half_there_are_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(f"{B.hex()} 1\n{text}", "latin-1")
    assert left(tmp_path).suspects == {B: 1}


def test_where_it_cannot_be_written_nothing_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).mkdir()
    life = UnderWay(tmp_path)
    life.resume(lambda _: True)
    life.begin([A])
    life.end([A])
    life.close()
    assert "cannot be written" in caplog.text


class TestALineAfterADeath:
    """The file says how the process before ended; the line of this one has no other process to ask."""

    def composed(self, number: int) -> list[MadeTrace]:
        composer = Composer(3)
        return [composer.trace(2) for _ in range(number)]

    async def settled(self, folder: Path, traces: list[MadeTrace], deaths: dict[bytes, int]) -> RunningLine:
        async with RunningLine(folder) as line:
            for trace in traces:
                await line.send(trace)
            await line.stop()
            text = "".join(f"{trace_id.hex()} {number}\n" for trace_id, number in deaths.items())
            (folder / FILE_NAME).write_text(text)
            line.store = line._open()
            await line._start()
            await line.settle()
            assert line.pipeline._under_way.suspects == {}
            return line

    async def test_suspects_are_decided_like_all_others(self, tmp_path: Path) -> None:
        traces = self.composed(6)
        deaths = {traces[0].trace_id: 1, traces[1].trace_id: TOGETHER, traces[2].trace_id: HOPELESS - 1}
        async with RunningLine(tmp_path / "x"):
            pass
        line = await self.settled(tmp_path, traces, deaths)
        line.store = line._open()
        assert line.standing() == as_file(traces)
        line.store.close()

    async def test_one_that_is_hopeless_is_set_aside_and_costs_no_other(self, tmp_path: Path) -> None:
        traces = self.composed(4)
        line = await self.settled(tmp_path, traces, {traces[1].trace_id: HOPELESS})
        line.store = line._open()
        aside = line.results_of(traces[1])
        assert {(each["outcome"], each["why"]) for each in aside} == {("unscored", "metric_error")}
        assert "the collector ended each time" in aside[0]["reason"]
        expected = as_file([trace for trace in traces if trace is not traces[1]])
        standing = line.standing()
        of_traces = {key: value for key, value in expected.items() if key[1] != "session.agent_reliability"}
        assert {key: standing[key] for key in of_traces if key[1].startswith("trace.")} == {
            key: value for key, value in of_traces.items() if key[1].startswith("trace.")
        }
        line.store.close()

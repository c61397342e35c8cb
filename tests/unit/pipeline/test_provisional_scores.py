"""Provisional scores of open sessions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.exporters.delivery.emitter import Emitter
from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.store import WriteSet
from pandaeval_collector.store.connection import FILE_NAME
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.series import EVALUATIONS, REVISIONS, SCORE
from pandaeval_otel.model import Trigger
from support.line import RunningPipeline, as_file, in_session
from support.made_traces import Composer, MadeTrace
from support.results import result

DECIDED, QUIET, IDLE = 11.0, 61.0, 1000.0
TIMING = Timing(upkeep=1e9, session_interim=60.0)


def in_one_session(number: int) -> list[MadeTrace]:
    composer = Composer(1, sessions=1)
    made = [composer.trace(4) for _ in range(3 * number)]
    return [in_session(trace, "s") for trace in made if trace.session is not None][:number]


def of_session(line: RunningPipeline, metric: str = "agent_reliability") -> list[dict[str, Any]]:
    return [each for each in line.results() if each["level"] == "session" and each["metric"] == metric]


def told(results: list[dict[str, Any]]) -> list[tuple[int, bool, str]]:
    return [(each["revision"], each["final"], each["trigger"]) for each in results]


def counted(line: RunningPipeline, instrument: str) -> int:
    """Return how often a session entered a series."""
    database = sqlite3.connect(line.store.path / FILE_NAME)
    try:
        query = "SELECT coalesce(sum(count), 0) FROM series WHERE name = ? AND attributes LIKE '%agent_reliability%'"
        return int(database.execute(query, (instrument,)).fetchone()[0])
    finally:
        database.close()


def sessions(quiet: float | None) -> OpenSessions:
    return OpenSessions(Timing(session_interim=quiet, session_idle=1e6, session_max_age=1e6), lambda ids: ())


class TestWhenProvisionalScoresAreDue:
    def test_a_session_is_due_once_after_each_quiet_period(self) -> None:
        interims = sessions(60.0)
        interims.touch("s", 0.0)
        interims.touch("s", 50.0)
        assert interims.take_due(100.0) == ({}, [])
        assert interims.take_due(110.0) == ({}, ["s"])
        assert interims.take_due(10_000.0) == ({}, [])
        interims.touch("s", 10_000.0)
        assert interims.take_due(10_060.0) == ({}, ["s"])

    def test_an_ended_session_gets_no_provisional_score(self) -> None:
        interims = sessions(60.0)
        interims.touch("s", 0.0)
        interims.end("s", 60.0)
        assert interims.take_due(60.0) == ({"s": Trigger.EXPLICIT}, [])
        assert interims.take_due(1e6) == ({}, [])
        interims.closed("s")
        assert len(interims) == 0

    def test_a_session_with_many_traces_must_be_quiet_for_longer(self) -> None:
        interims = sessions(60.0)
        for _ in range(100):
            interims.touch("s", 0.0)
        assert interims.take_due(179.0) == ({}, [])
        assert interims.take_due(180.0) == ({}, ["s"])

    def test_at_most_64_sessions_are_due_at_once(self) -> None:
        interims = sessions(60.0)
        for number in range(150):
            interims.touch(str(number), 0.0)
        assert [len(interims.take_due(60.0)[1]) for _ in range(4)] == [64, 64, 22, 0]

    def test_no_session_is_due_if_provisional_scores_are_disabled(self) -> None:
        interims = sessions(None)
        interims.touch("s", 0.0)
        assert interims.take_due(999_999.0) == ({}, [])


class TestProvisionalScores:
    async def test_final_scores_replace_provisional_scores_when_the_session_closes(self, tmp_path: Path) -> None:
        first, second = in_one_session(2)
        async with RunningPipeline(tmp_path, TIMING) as line:
            await line.send(first)
            await line.wait(DECIDED)
            assert of_session(line) == []
            await line.wait(QUIET)
            assert told(of_session(line)) == [(1, False, "session_changed")]
            await line.wait(QUIET)
            assert len(of_session(line)) == 1, "without new traces there is no new score"
            await line.send(second)
            await line.wait(DECIDED)
            await line.wait(QUIET)
            assert line.store.reads.session_is_open("s")
            await line.wait(IDLE)
            assert told(of_session(line)) == [
                (1, False, "session_changed"),
                (2, False, "session_changed"),
                (3, True, "idle"),
            ]
            assert len({each["id"] for each in of_session(line)}) == 3
            assert line.standing() == as_file([first, second]), "the last results equal those of a file"

    async def test_provisional_scores_are_not_counted_in_series(self, tmp_path: Path) -> None:
        traces = in_one_session(2)
        async with RunningPipeline(tmp_path, TIMING) as line:
            for trace in traces:
                await line.send(trace)
                await line.wait(DECIDED)
                await line.wait(QUIET)
                assert (counted(line, EVALUATIONS.name), counted(line, SCORE.name)) == (0, 0)
            await line.wait(IDLE)
            assert (counted(line, EVALUATIONS.name), counted(line, SCORE.name)) == (1, 1)
            assert counted(line, REVISIONS.name) == 0, "replacing a provisional score is no revision"

    async def test_a_session_that_continues_after_it_closed_gets_provisional_scores(self, tmp_path: Path) -> None:
        first, second = in_one_session(2)
        async with RunningPipeline(tmp_path, TIMING) as line:
            await line.send(first)
            await line.wait(DECIDED)
            await line.wait(IDLE)
            await line.send(second)
            await line.wait(DECIDED)
            await line.wait(QUIET)
            await line.wait(IDLE)
            assert told(of_session(line)) == [(1, True, "idle"), (2, False, "session_changed"), (3, True, "idle")]
            assert counted(line, EVALUATIONS.name) == 2
            assert (counted(line, SCORE.name), counted(line, REVISIONS.name)) == (1, 1)

    async def test_a_provisional_score_is_listed_as_not_final(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, TIMING) as line:
            await line.send(trace)
            await line.wait(DECIDED)
            await line.wait(QUIET)
            finder = Finder(line.folder)
            found = finder.session("s")
            finder.close()
            assert found is not None
            assert found[0].results["session.agent_reliability"]["final"] is False

    async def test_a_failed_provisional_score_affects_no_other_session_and_no_final_score(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [trace] = in_one_session(1)
        other = in_session(in_one_session(2)[1], "other")
        async with RunningPipeline(tmp_path, TIMING) as line:
            whole = line.line
            score = whole.scores.score

            def broken(session_id: str, trigger: Trigger) -> Any:
                if session_id == "s" and trigger is Trigger.SESSION_CHANGED:
                    raise ZeroDivisionError
                return score(session_id, trigger)

            monkeypatch.setattr(whole.scores, "score", broken)
            await line.send(trace)
            await line.send(other)
            await line.wait(DECIDED)
            await line.wait(QUIET)
            assert {each["session_id"] for each in of_session(line)} == {"other"}
            assert line.telemetry.total("pandaeval.sessions", "failed") == 1
            await line.wait(IDLE)
            assert told([each for each in of_session(line) if each["session_id"] == "s"]) == [(1, True, "idle")]


class TestCrashes:
    """Stops between steps, like kills."""

    async def test_a_restart_does_not_repeat_a_provisional_score(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, TIMING) as line:
            await line.send(trace)
            await line.wait(DECIDED)
            await line.wait(QUIET)
            await line.restart()
            await line.wait(QUIET)
            assert told(of_session(line)) == [(1, False, "session_changed")]
            await line.wait(IDLE)
            assert told(of_session(line))[1:] == [(2, True, "idle")]
            assert counted(line, EVALUATIONS.name) == 1

    async def test_a_missing_provisional_score_is_made_after_a_restart(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, TIMING) as line:
            await line.send(trace)
            await line.wait(DECIDED)
            await line.restart()
            await line.wait(QUIET)
            assert told(of_session(line)) == [(1, False, "session_changed")]


class TestExport:
    def test_provisional_scores_are_exported_only_as_log_events(self) -> None:
        changes = WriteSet()
        Emitter({"logs", "traces"}).add_interim([result(final=False)], changes)
        assert [each.signal for each in changes.outbox] == ["logs"]
        assert not changes.series

    def test_provisional_scores_are_not_exported_without_a_logs_exporter(self) -> None:
        changes = WriteSet()
        Emitter({"traces"}).add_interim([result(final=False)], changes)
        assert not changes.outbox

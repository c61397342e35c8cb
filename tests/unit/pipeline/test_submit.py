"""Completed traces: stored, closed, rejected, counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pandaeval_collector.pipeline.open_sessions import OpenSessions
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers import Draining, Overloaded
from pandaeval_otel._proto.trace_service_pb2 import CompletedTrace
from pandaeval_otel.assembly import CloseRules
from support.disk import failing_disk
from support.line import RunningPipeline, as_file, in_session
from support.made_traces import Composer, MadeTrace
from support.own_output import output_about
from support.receivers import until


def made(number: int, seed: int = 1) -> list[MadeTrace]:
    composer = Composer(seed)
    return [composer.trace(4) for _ in range(number)]


def submitted(trace: MadeTrace, *, fragment: bool = False, session_end: bool = False) -> CompletedTrace:
    data = trace.request().SerializeToString()
    session = trace.session or ""
    return CompletedTrace(
        trace_id=trace.trace_id, spans=data, fragment=fragment, session_id=session, session_end=session_end
    )


def assert_accounted(line: RunningPipeline, decoded: int) -> None:
    counts = {key[1:]: n for key, n in line.telemetry.counts().items() if key[0] == "pandaeval.spans"}
    assert counts.pop(("decoded", "")) == decoded == sum(counts.values())


class TestTraces:
    async def test_submitted_traces_are_decided_at_once_with_the_results_of_a_file(self, tmp_path: Path) -> None:
        traces = made(20)
        async with RunningPipeline(tmp_path) as line:
            assert await line.pipeline.submit([submitted(trace) for trace in traces]) == [""] * 20
            await line.wait(0)
            assert {each["trigger"] for each in line.results()} == {"explicit"}
            await line.settle()
            assert line.standing() == as_file(traces)
            assert_accounted(line, 80)

    async def test_a_fragment_is_not_decided_at_once(self, tmp_path: Path) -> None:
        (trace,) = made(1)
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(trace, fragment=True)])
            await line.wait(5)
            assert not line.results()
            await line.wait(6)
            assert {each["trigger"] for each in line.results()} == {"root_ended"}

    async def test_submitting_a_trace_twice_changes_nothing(self, tmp_path: Path) -> None:
        (trace,) = made(1)
        async with RunningPipeline(tmp_path) as line:
            for _ in range(2):
                assert await line.pipeline.submit([submitted(trace)]) == [""]
                await line.wait(0)
            assert {each["revision"] for each in line.results()} == {1}
            assert_accounted(line, 8)

    async def test_a_restart_remembers_that_a_trace_is_complete(self, tmp_path: Path) -> None:
        (trace,) = made(1)
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(trace)])
            await line.restart()
            await line.wait(0)
            assert {each["trigger"] for each in line.results()} == {"explicit"}

    async def test_a_restart_loses_no_spans_of_a_fragment(self, tmp_path: Path) -> None:
        (trace,) = made(1)
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(trace, fragment=True)])
            await line.restart()
            await line.settle()
            assert line.standing() == as_file([trace])


class TestRejections:
    @pytest.mark.parametrize(
        ("spoil", "reason"),
        [
            (lambda trace, other: CompletedTrace(trace_id=trace.trace_id, spans=b"\xff\xff\xff"), "malformed"),
            (
                lambda trace, other: CompletedTrace(trace_id=other.trace_id, spans=trace.request().SerializeToString()),
                "invalid",
            ),
            (lambda trace, other: CompletedTrace(trace_id=trace.trace_id), "invalid"),
        ],
    )
    async def test_a_rejected_trace_does_not_affect_the_other_traces(
        self, tmp_path: Path, spoil: object, reason: str
    ) -> None:
        first, bad, last = made(3)
        async with RunningPipeline(tmp_path) as line:
            assert callable(spoil)
            reasons = await line.pipeline.submit([submitted(first), spoil(bad, last), submitted(last)])
            assert [each.partition(":")[0] for each in reasons] == ["", reason, ""]
            await line.settle()
            assert line.standing() == as_file([first, last])
            decoded = 12 if "another" in reasons[1] else 8
            assert_accounted(line, decoded)

    async def test_spans_after_a_final_decision_are_rejected_as_late(self, tmp_path: Path) -> None:
        trace, other = made(2)
        early = MadeTrace(trace.trace_id, trace.session, trace.service, trace.spans[:2])
        async with RunningPipeline(tmp_path, Timing(CloseRules(max_spans=2), upkeep=1e9)) as line:
            await line.pipeline.submit([submitted(early)])
            await line.wait(0)
            reasons = await line.pipeline.submit([submitted(trace), submitted(other)])
            assert reasons[0].startswith("late")
            assert reasons[1] == ""

    async def test_spans_of_a_full_trace_are_rejected_as_late_before_its_decision(self, tmp_path: Path) -> None:
        trace, other = made(2)
        early = MadeTrace(trace.trace_id, trace.session, trace.service, trace.spans[:2])
        async with RunningPipeline(tmp_path, Timing(CloseRules(max_spans=2), upkeep=1e9)) as line:
            assert await line.pipeline.submit([submitted(early, fragment=True)]) == [""]
            reasons = await line.pipeline.submit([submitted(trace, fragment=True), submitted(other)])
            assert reasons[0].startswith("late")
            assert reasons[1] == ""

    async def test_the_collectors_own_output_is_ignored(self, tmp_path: Path) -> None:
        (trace,) = made(1)
        request = output_about([trace]).traces
        async with RunningPipeline(tmp_path) as line:
            assert await line.pipeline.submit(
                [CompletedTrace(trace_id=trace.trace_id, spans=request.SerializeToString())]
            ) == [""]
            assert_accounted(line, len(request.resource_spans[0].scope_spans[0].spans))
            assert not line.pipeline.open_traces

    async def test_submit_raises_overloaded_if_the_disk_fails_and_draining_at_a_shutdown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (trace,) = made(1)
        failures = failing_disk(monkeypatch)
        async with RunningPipeline(tmp_path) as line:
            failures["COMMIT"] = 100
            with pytest.raises(Overloaded):
                await line.pipeline.submit([submitted(trace)])
            failures["COMMIT"] = 0
            line.pipeline._committer.stopping = True
            with pytest.raises(Draining):
                await line.pipeline.submit([submitted(trace)])
            line.pipeline._committer.stopping = False


class TestSessionEnds:
    async def _sessions(self, line: RunningPipeline) -> list[str]:
        return [each["session_id"] for each in line.results() if each["level"] == "session"]

    async def test_a_session_ends_after_all_its_traces_are_decided(self, tmp_path: Path) -> None:
        first, second = (in_session(trace, "s") for trace in _with_session(2))
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(first, fragment=True), submitted(second, session_end=True)])
            await line.wait(1)
            assert not await self._sessions(line)
            await line.wait(11)
            await line.wait(0)
            assert await self._sessions(line) == ["s"]
            (scored,) = (each for each in line.results() if each["level"] == "session")
            assert (scored["trigger"], scored["metadata"]["total_traces_in_session"]) == ("explicit", 2)

    async def test_a_session_end_can_be_submitted_without_a_trace(self, tmp_path: Path) -> None:
        (trace,) = (in_session(trace, "s") for trace in _with_session(1))
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(trace)])
            await line.wait(0)
            assert await line.pipeline.submit([CompletedTrace(session_id="s", session_end=True)]) == [""]
            await line.wait(0)
            assert await self._sessions(line) == ["s"]

    @pytest.mark.parametrize("restarts_after_end", [1, 2])
    async def test_a_restart_remembers_a_session_end_and_its_undecided_traces(
        self, tmp_path: Path, restarts_after_end: int
    ) -> None:
        first, second = (in_session(trace, "s") for trace in _with_session(2))
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(first, fragment=True), submitted(second, session_end=True)])
            for _ in range(restarts_after_end):
                await line.restart()
            await line.wait(1)
            assert not await self._sessions(line)
            await line.wait(11)
            await line.wait(0)
            assert await self._sessions(line) == ["s"]
            (scored,) = (each for each in line.results() if each["level"] == "session")
            assert (scored["trigger"], scored["metadata"]["total_traces_in_session"]) == ("explicit", 2)
            await until(lambda: not line.store.reads.endings())
            await line.restart()
            await line.wait(0)
            assert await self._sessions(line) == ["s"]

    async def test_a_restart_remembers_a_session_end_submitted_without_a_trace(self, tmp_path: Path) -> None:
        (trace,) = (in_session(trace, "s") for trace in _with_session(1))
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([submitted(trace)])
            await line.wait(0)
            await line.pipeline.submit([CompletedTrace(session_id="s", session_end=True)])
            await line.restart()
            await line.wait(0)
            assert await self._sessions(line) == ["s"]

    async def test_the_end_of_an_unknown_session_is_forgotten(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.submit([CompletedTrace(session_id="nobody's", session_end=True)])
            assert line.store.reads.endings() == ["nobody's"]
            await line.wait(0)
            await until(lambda: not line.store.reads.endings())
            assert not await self._sessions(line)

    def test_completed_session_ends_are_forgotten(self) -> None:
        endings = OpenSessions(Timing(), lambda ids: ())
        endings.expect(b"1", "s")
        endings.expect(b"1", "s")
        endings.expect(b"2", "s")
        endings.expect(b"3", "")
        assert not endings.may_end("s")
        assert [endings.decided(trace_id) for trace_id in (b"3", b"1", b"1", b"2")] == [None, None, None, "s"]
        assert endings.may_end("s")
        endings.expect(b"4", "s")
        assert endings.decided(b"4") is None
        assert (endings._session_of, endings._undecided, endings._ending) == ({}, {}, set())

    def test_a_session_ends_with_its_trace_even_if_more_of_the_trace_arrives(self) -> None:
        endings = OpenSessions(Timing(), lambda ids: ())
        endings.expect(b"1", "s")
        assert not endings.may_end("s")
        endings.expect(b"1", "s")
        assert endings.decided(b"1") == "s"


def _with_session(number: int) -> Sequence[MadeTrace]:
    return [trace for trace in made(10 * number) if trace.session is not None][:number]

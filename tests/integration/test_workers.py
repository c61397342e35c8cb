"""Scoring workers give the results of a single process and can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.app.line_setup import LineSetup
from pandaeval_collector.base.runtime import child
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.base.runtime.failpoints import VARIABLE
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import load as load_config
from pandaeval_collector.pipeline.line.members import from_row
from pandaeval_collector.pipeline.line_processes import LineProcesses
from pandaeval_collector.scoring.evaluator import EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import SessionTraceRow, Store
from pandaeval_lab.replay.files import Input
from pandaeval_otel.model import Trigger
from support.line import RunningPipeline, cut, in_session
from support.made_traces import Composer, MadeTrace
from support.one_word import one_outcome_per_id
from support.receivers import until

QUIET = 11.0
CAPTURES = Path(__file__).parents[1] / "golden" / "captures"
JUDGED = EvaluatorSettings(judge=JudgeSettings("openai/gpt-4o-mini"))
_MOMENTS = ("time", "duration_ms")
"""Fields that depend on the time of the decision."""

Play = Callable[[RunningPipeline], Awaitable[None]]


@pytest.fixture(autouse=True)
def _one_word_per_id() -> Iterator[None]:
    with one_outcome_per_id():
        yield


def _never_ready(module: str, environ: Mapping[str, str], silent: bool) -> subprocess.Popen[bytes]:
    """Replace a worker with a silent process."""
    return subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def _setup(folder: Path, embedder: str = "embedded") -> LineSetup:
    return LineSetup(load_config(None, {}, {"embedding.model": embedder, "store.path": str(folder)}))


async def said(folder: Path, workers: int, settings: EvaluatorSettings, play: Play) -> dict[str, Any]:
    """Return results, facts, jobs and outcomes in order."""
    line = RunningPipeline(folder, embedder=load("embedded"), settings=settings, workers=workers)
    async with line:
        await play(line)
        results = [{key: value for key, value in each.items() if key not in _MOMENTS} for each in line.results()]
        reader = line.store.reads.connection()
        jobs = reader.execute("SELECT id, trace_id, metric, body FROM jobs ORDER BY id").fetchall()
        sessions = {each["session_id"] for each in results if each["session_id"] is not None}
        members = {id_: [_remembered(row) for row in line.store.reads.session_traces(id_)] for id_ in sessions}
        traces = reader.execute("SELECT trace_id, revision, digest FROM traces ORDER BY no").fetchall()
        counted = line.telemetry.counts()
    books = {key: count for key, count in counted.items() if key[0] != "pandaeval.workers"}
    return {"results": results, "jobs": jobs, "members": members, "traces": traces, "books": books}


def _remembered(row: SessionTraceRow) -> tuple[object, ...]:
    member = from_row(row)
    direction, words = member.direction_and_words() if member.facts.embedder is not None else (None, None)
    vector = None if direction is None or direction.components is None else direction.components.tobytes()
    return row.trace_id, row.body, member.text, vector, words, member.held


async def compared(folder: Path, settings: EvaluatorSettings, play: Play) -> dict[str, Any]:
    """Return results without and with workers."""
    without = await said(folder / "without", 0, settings, play)
    for workers in (1, 2):
        found = await said(folder / f"with {workers}", workers, settings, play)
        for part, expected in without.items():
            assert found[part] == expected, part
    return without


class TestWorkersGiveTheResultsOfOneProcess:
    @pytest.mark.parametrize(
        "settings",
        [pytest.param(EvaluatorSettings(), id="plain", marks=pytest.mark.slow), pytest.param(JUDGED, id="judged")],
    )
    async def test_for_a_stream_with_late_spans_and_changed_sessions(
        self, tmp_path: Path, settings: EvaluatorSettings
    ) -> None:
        traces = made(300)
        traces[::9] = [in_session(each, "elsewhere", each.spans[-1:]) for each in traces[::9]]

        async def play(line: RunningPipeline) -> None:
            chance = random.Random(7)
            parts = [(trace, part) for trace in traces for part in cut(trace, chance)]
            chance.shuffle(parts)
            for start in range(0, len(parts), 200):
                for trace, part in parts[start : start + 200]:
                    await line.send(trace, part)
                await line.wait(chance.choice([2.0, QUIET, 200.0]))
            await line.settle()

        found = await compared(tmp_path, settings, play)
        assert any(each["revision"] > 1 for each in found["results"])
        assert any(each["session_id"] == "elsewhere" for each in found["results"])
        assert bool(found["jobs"]) == (settings is JUDGED)

    async def test_for_captures_of_real_frameworks(self, tmp_path: Path) -> None:
        async def play(line: RunningPipeline) -> None:
            for path in sorted(CAPTURES.glob("*/*.otlp.jsonl")):
                for request in Input(str(path)).requests():
                    await (line.pipeline.logs if request.logs else line.pipeline.traces)(request.data)
            await line.settle()

        found = await compared(tmp_path, JUDGED, play)
        assert {"coherence", "tool_loop", "loop_detection", "agent_consistency"} <= {
            each["metric"] for each in found["results"]
        }

    async def test_after_a_restart_during_scoring(self, tmp_path: Path) -> None:
        traces = [Composer(3).trace() for _ in range(200)]

        async def play(line: RunningPipeline) -> None:
            for trace in traces:
                await line.send(trace)
            line.now += QUIET
            await asyncio.sleep(0.02)
            await line.restart()
            await line.settle()

        line = RunningPipeline(tmp_path / "with", workers=1)
        async with line:
            await play(line)
            assert line.telemetry.total("pandaeval.traces", "failed") == 0
            found = line.standing()
        async with RunningPipeline(tmp_path / "without", embedder=load("embedded")) as other:
            await play(other)
            assert other.standing() == found


def made(number: int, seed: int = 5) -> list[MadeTrace]:
    composer = Composer(seed)
    return [composer.trace() for _ in range(number)]


class TestFailedWorkers:
    async def test_a_killed_worker_is_replaced_and_its_traces_are_scored_once(self, tmp_path: Path) -> None:
        traces = made(300)
        async with RunningPipeline(tmp_path / "without", embedder=load("embedded")) as calm:
            for trace in traces:
                await calm.send(trace)
            await calm.settle()
            expected = calm.standing()
        environ = {**os.environ, VARIABLE: "in_worker:1"}
        async with RunningPipeline(tmp_path / "with", workers=1, environ=environ) as line:
            for trace in traces:
                await line.send(trace)
            await line.settle()
            assert line.telemetry.total("pandaeval.workers", "ended") == 1
            assert line.telemetry.total("pandaeval.workers", "started") == 2
            assert line.telemetry.total("pandaeval.traces", "failed") == 0
            assert line.telemetry.total("pandaeval.traces", "decided") == len(traces)
            ids = [each["id"] for each in line.results()]
            assert len(ids) == len(set(ids))
            assert line.standing() == expected

    async def test_a_worker_killed_while_idle_loses_no_trace(self, tmp_path: Path) -> None:
        first, second = made(2)
        async with RunningPipeline(tmp_path, workers=1) as line:
            assert line.workers is not None
            await line.send(first)
            await line.settle()
            os.kill(_pids(line.workers)[0], signal.SIGKILL)
            await line.send(second)
            await line.settle()
            assert line.telemetry.total("pandaeval.traces", "failed") == 0
            assert line.telemetry.total("pandaeval.traces", "decided") == 2

    @pytest.mark.slow
    async def test_a_trace_that_kills_every_worker_is_quarantined(self, tmp_path: Path) -> None:
        traces = made(20)
        deadly = traces[7]
        async with RunningPipeline(tmp_path / "data", workers=1, environ=_deadly(tmp_path, deadly)) as line:
            for trace in traces:
                await line.send(trace)
            await line.settle()
            assert line.telemetry.counts()["pandaeval.traces", "failed", "worker_ended"] == 1
            assert line.telemetry.total("pandaeval.workers", "ended") == 4  # once with all, then three times alone
            assert line.telemetry.total("pandaeval.traces", "decided") == len(traces)
            decided = {row[0] for row in line.store.reads.connection().execute("SELECT trace_id FROM traces")}
            assert decided == {trace.trace_id for trace in traces}
            aside = line.results_of(deadly)
            assert {(each["outcome"], each["why"]) for each in aside} == {("unscored", "metric_error")}
            assert "worker_ended" in aside[0]["reason"]
            await line.restart()
            assert not line.pipeline.open_traces

    @pytest.mark.slow
    async def test_a_trace_that_makes_workers_hang_is_quarantined(self, tmp_path: Path) -> None:
        traces = made(20)
        environ = _at_the_sight(tmp_path, traces[7], "time.sleep(1000)")
        async with RunningPipeline(tmp_path / "data", workers=1, environ=environ, timeout=4.0) as line:
            for trace in traces:
                await line.send(trace)
            line.now += QUIET
            await until(lambda: not line.pipeline.open_traces, 60)
            assert line.telemetry.counts()["pandaeval.traces", "failed", "worker_hung"] == 1
            assert line.telemetry.counts()["pandaeval.workers", "ended", "hung"] == 2  # with all traces, then alone
            assert line.telemetry.total("pandaeval.traces", "decided") == len(traces)

    @pytest.mark.slow
    async def test_a_stop_does_not_wait_for_a_worker_that_does_not_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [trace] = made(1)
        async with RunningPipeline(tmp_path / "data", workers=1) as line:
            assert line.workers is not None
            monkeypatch.setattr(child, "_popen", _never_ready)
            await line.send(trace)
            os.kill(_pids(line.workers)[0], signal.SIGKILL)
            await until(lambda: line.telemetry.total("pandaeval.workers", "ended") == 1)
            line.now += QUIET
            await asyncio.sleep(0.1)
            await asyncio.wait_for(line.pipeline.stop(), 30)
        async with RunningPipeline(tmp_path / "data", embedder=load("embedded")) as again:
            await again.settle()
            assert again.telemetry.total("pandaeval.traces", "decided") == 1

    async def test_open_traces_are_completed_at_the_stop(self, tmp_path: Path) -> None:
        traces = made(140)
        line = RunningPipeline(tmp_path, workers=2)
        async with line:
            for trace in traces:
                await line.send(trace)
            await line.pipeline.stop(decide=True)
            assert not line.pipeline.open_traces
            assert {each["trigger"] for each in line.results() if each["level"] == "trace"} == {Trigger.SHUTDOWN.value}


class TestFailingInputs:
    async def test_a_damaged_trace_fails_alone_and_once(self, tmp_path: Path) -> None:
        bad, good = (in_session(trace, "s") for trace in made(2))
        async with RunningPipeline(tmp_path, workers=1) as line:
            await line.send(bad)
            await line.send(good)
            line.store._writer.submit(
                lambda connection: connection.execute(
                    "UPDATE chunks SET packed = 0, data = x'ff' WHERE trace_id = ?", (bad.trace_id,)
                )
            ).result()
            await line.settle()
            assert line.telemetry.total("pandaeval.traces", "failed") == 1
            assert line.telemetry.total("pandaeval.workers", "ended") == 0
            assert line.of(good, "tool_loop") or line.of(good, "coherence")

    async def test_an_embedder_that_fails_loses_only_results_that_need_it(self, tmp_path: Path) -> None:
        first, second = (in_session(trace, "s") for trace in _answered(2))
        failing = _patched(
            tmp_path,
            "import pandaeval_collector.analysis.embedding.embedded as m\n"
            "def fail(self, texts): raise OSError('the embedder is out of order')\n"
            "m.EmbeddedEmbedder.embed = fail",
        )
        async with RunningPipeline(tmp_path / "data", workers=1, environ=failing) as line:
            for trace in (first, second):
                await line.send(trace)
            await line.settle()
            [found] = line.of(first, "coherence")
            assert (found["why"], found["reason"]) == ("metric_error", "OSError: the embedder is out of order")
            assert [each["outcome"] for each in line.of(first, "loop_detection")] == ["assumed"]
            assert line.telemetry.total("pandaeval.traces", "failed") == 0


class TestStarting:
    async def test_the_cause_of_a_failed_start_is_reported(self, tmp_path: Path) -> None:
        Store(tmp_path, "off").close()
        setup = _setup(tmp_path, "no such embedder")
        pool = LineProcesses(2, setup, os.environ, Telemetry())
        with pytest.raises(
            ChildStartError, match=r"a process of the line does not start.*unknown embedder 'no such embedder'"
        ):
            await pool.start()
        await pool.close()

    async def test_a_worker_of_another_edition_is_rejected(self, tmp_path: Path) -> None:
        other = _patched(tmp_path, "import pandaeval_collector.base.runtime.peer as m; m.EDITION += 1")
        pool = LineProcesses(1, _setup(tmp_path), other, Telemetry())
        with pytest.raises(ChildStartError, match="restart the collector"):
            await pool.start()
        await pool.close()

    async def test_workers_end_with_their_parent(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path, workers=2) as line:
            assert line.workers is not None
            pids = _pids(line.workers)
            assert len(pids) == 2
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)


def _answered(number: int) -> list[MadeTrace]:
    found = [trace for trace in made(40) if "gen_ai.output.messages" in str(trace.spans[-1])]
    return found[:number]


def _deadly(folder: Path, trace: MadeTrace) -> dict[str, str]:
    """Return an environment whose workers die on a trace."""
    return _at_the_sight(folder, trace, "os.kill(os.getpid(), signal.SIGKILL)")


def _at_the_sight(folder: Path, trace: MadeTrace, act: str) -> dict[str, str]:
    """Return an environment whose workers act on a trace."""
    return _patched(
        folder,
        "import os, signal, time\n"
        "import pandaeval_collector.pipeline.line.stored_traces as m\n"
        "gather = m.gather\n"
        "def watched(parts):\n"
        "    found = gather(parts)\n"
        f"    if found.spans[0].trace_id == {trace.trace_id.hex()!r}: {act}\n"
        "    return found\n"
        "m.gather = watched",
    )


def _pids(workers: LineProcesses) -> list[int]:
    return [process.pid for process in workers._all if process.pid is not None]


def _patched(folder: Path, program: str) -> dict[str, str]:
    """Return an environment whose workers run a program first."""
    place = folder / json.dumps(len(program))
    place.mkdir(parents=True)
    root = Path(__file__).parents[2]
    (place / "sitecustomize.py").write_text(
        f"import sys\nsys.path[:0] = {[str(root), str(root / 'collector')]!r}\n{program}\n"
    )
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}

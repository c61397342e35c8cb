"""Late, disordered and broken input of a collector."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard

import pandaeval_collector.pipeline.deciding as deciding_module
import pandaeval_collector.scoring.evaluator.evaluator as evaluator_module
from pandaeval_collector.base.score import Score
from pandaeval_collector.pipeline.accounting import residual
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers import Accepted, Dense, Draining, Malformed, Overloaded
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store import Chunk, StoreFullError
from pandaeval_otel.assembly import CloseRules
from support.database import open_database
from support.disk import failing_disk
from support.embedder import WordEmbedder
from support.line import RunningPipeline, as_file, cut, in_session
from support.made_traces import Composer, MadeTrace
from support.own_output import output_about
from support.receivers import until
from support.wire_bytes import tiny_spans

QUIET = 11.0
REOPENED = 6.0


def in_one_session(number: int, seed: int = 1, spans: int = 4) -> list[MadeTrace]:
    """Return traces of a session, earliest first."""
    composer = Composer(seed)
    made = (composer.trace(spans) for _ in range(3 * number))
    return [in_session(trace, "s") for trace in made if trace.session is not None][:number]


class TestSameResultsInAnyOrder:
    @pytest.mark.parametrize("seed", range(6))
    async def test_a_stream_in_any_order_gives_the_results_of_a_file(self, tmp_path: Path, seed: int) -> None:
        chance, composer = random.Random(seed), Composer(seed, sessions=3)
        traces = [composer.trace() for _ in range(40)]
        parts = [(trace, part) for trace in traces for part in cut(trace, chance)]
        chance.shuffle(parts)
        async with RunningPipeline(tmp_path) as line:
            for trace, part in parts:
                await line.send(trace, part)
                if chance.random() < 0.2:
                    await line.wait(chance.choice([2.0, QUIET, 200.0]))
                if chance.random() < 0.03:
                    await line.restart()
            await line.settle()
            assert any(each["revision"] > 1 for each in line.results())
            assert line.standing() == as_file(traces)

    async def test_answers_are_compared_across_the_batches_of_a_file(self, tmp_path: Path) -> None:
        traces = in_one_session(150, spans=2)
        async with RunningPipeline(tmp_path) as line:
            for number, trace in enumerate(traces):
                await line.send(trace)
                if number % 25 == 0:
                    await line.wait(QUIET)
            await line.settle()
            assert line.standing() == as_file(traces)

    async def test_an_earlier_trace_that_arrives_late_changes_the_comparison_of_later_traces(
        self, tmp_path: Path
    ) -> None:
        first, second, third = in_one_session(3)
        async with RunningPipeline(tmp_path) as line:
            for trace in (second, third, first):
                await line.send(trace)
                await line.wait(QUIET)
            for trace, triggers in (
                (first, [(1, "root_ended")]),
                (second, [(1, "root_ended"), (2, "session_changed")]),
                (third, [(1, "root_ended"), (2, "session_changed")]),
            ):
                assert [(each["revision"], each["trigger"]) for each in line.of(trace, "loop_detection")] == triggers
            compared = line.of(third, "loop_detection")[-1]["metadata"]["comparisons"]
            assert [each["trace_id"] for each in compared] == [first.trace_id.hex(), second.trace_id.hex()]
            await line.settle()
            assert line.standing() == as_file([first, second, third])

    async def test_unchanged_results_are_not_stored_again(self, tmp_path: Path) -> None:
        first, second = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            for trace in (first, second, first, second):
                await line.send(trace)
                await line.wait(QUIET)
            ids = [each["id"] for each in line.results()]
            assert len(ids) == len(set(ids))
            assert line.telemetry.total("pandaeval.spans", "duplicate") == len(first.spans) + len(second.spans)

    async def test_late_spans_can_move_a_trace_to_another_session(self, tmp_path: Path) -> None:
        first, second, third = in_one_session(3)
        moved = in_session(first, "elsewhere", first.spans[-1:])  # the late root names another session
        async with RunningPipeline(tmp_path) as line:
            await line.send(moved, moved.spans[:-1])
            await line.wait(200)
            await line.send(second)
            await line.send(third)
            await line.wait(QUIET)
            assert members(line, "s") == [first.trace_id, second.trace_id, third.trace_id]
            await line.send(moved, moved.spans[-1:])
            await line.wait(REOPENED)
            assert members(line, "s") == [second.trace_id, third.trace_id]
            assert members(line, "elsewhere") == [first.trace_id]
            await line.settle()
            expected = as_file([moved, second, third])
            assert {key: value for key, value in line.standing().items() if key in expected} == expected


class TestLateSpans:
    async def test_a_late_span_makes_a_new_revision(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace, trace.spans[1:])
            await line.wait(QUIET)
            assert await line.send(trace, trace.spans[:1]) == Accepted()
            await line.wait(REOPENED)
            first, second = line.of(trace, "tool_loop") or line.of(trace, "coherence")
            assert (first["revision"], second["revision"], second["late_spans"]) == (1, 2, 1)
            assert first["id"] != second["id"]

    async def test_late_spans_are_rejected_and_counted_if_reopening_is_disabled(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        timing = Timing(CloseRules(reopen_delays=()))
        async with RunningPipeline(tmp_path, timing) as line:
            await line.send(trace, trace.spans[1:])
            await line.wait(QUIET)
            answer = await line.send(trace, trace.spans)
            assert answer.rejected == 1
            assert "scored for good" in answer.message
            assert line.telemetry.total("pandaeval.spans", "rejected") == 1
            assert not line.pipeline.open_traces
            await until(lambda: not list(line.store.reads.open_chunks()))

    async def test_a_span_that_becomes_too_late_while_it_is_stored_is_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, Timing(CloseRules(reopen_delays=()))) as line:
            await line.send(trace, trace.spans[1:])
            held = hold_appends(line, monkeypatch)
            sending = asyncio.create_task(line.send(trace, trace.spans[:1]))
            await until(lambda: bool(held))
            await line.wait(QUIET)
            held[0].set_result(None)
            assert (await sending).rejected == 1
            await until(lambda: not list(line.store.reads.open_chunks()))

    async def test_a_span_that_is_stored_while_its_trace_is_decided_is_scored(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace, trace.spans[1:])
            held = hold_appends(line, monkeypatch)
            sending = asyncio.create_task(line.send(trace, trace.spans[:1]))
            await until(lambda: bool(held))
            await line.wait(QUIET)
            held[0].set_result(None)
            assert await sending == Accepted()
            await line.settle()
            assert line.standing() == as_file([trace])

    async def test_a_reopened_trace_keeps_its_spans_after_the_late_window(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, Timing(late_window=0.0, upkeep=QUIET + 1)) as line:
            await line.send(trace, trace.spans[1:])
            await line.wait(QUIET)
            await line.send(trace, trace.spans[:1])
            await line.wait(2.0)  # forgetting happens here
            await line.wait(REOPENED)
            assert line.of(trace, "coherence")[-1]["revision"] == 2
            await line.settle()
            assert line.standing() == as_file([trace])

    async def test_spans_after_the_late_window_are_rejected(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, Timing(late_window=0.0, upkeep=QUIET + 1)) as line:
            await line.send(trace, trace.spans[1:])
            await line.wait(QUIET)
            await line.wait(2.0)
            assert (await line.send(trace, trace.spans[:1])).rejected == 1


class TestCaps:
    @pytest.mark.parametrize("rules", [CloseRules(max_spans=100), CloseRules(max_bytes=40_000)])
    async def test_a_huge_trace_is_cut_like_the_same_trace_in_a_file(self, tmp_path: Path, rules: CloseRules) -> None:
        huge, other = Composer(1).trace(400), Composer(2).trace(5)
        parts = [huge.spans[start : start + 30] for start in range(0, 400, 30)]
        async with RunningPipeline(tmp_path, Timing(rules)) as line:
            answers = [await line.send(huge, part) for part in parts]
            await line.send(other)
            await line.settle()
            taken = next(index for index, answer in enumerate(answers) if answer.rejected)
            assert [answer.rejected for answer in answers[taken:]] == [len(part) for part in parts[taken:]]
            assert {each["trigger"] for each in line.of(huge, "coherence")} <= {"span_limit", "memory"}
            assert len(line.of(huge, "coherence")) == 1
            assert line.of(other, "coherence")
            await until(lambda: not list(line.store.reads.open_chunks()))
            cut_traces = [replace(huge, spans=part) for part in parts]
            assert line.standing() == as_file([*cut_traces, other], line.timing)


class TestTrouble:
    """Broken disk, metric and bytes."""

    async def test_a_metric_that_raises_loses_only_its_own_result(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        metrics = dict(registry())
        metrics["trace.coherence"] = replace(metrics["trace.coherence"], evaluate=fail)
        monkeypatch.setattr(evaluator_module, "registry", lambda modules: metrics)
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            await line.settle()
            [failed] = line.of(trace, "coherence")
            assert (failed["outcome"], failed["why"], failed["score"]) == ("unscored", "metric_error", None)
            assert failed["reason"] == "ZeroDivisionError: a bug"
            assert line.telemetry.component_errors()["metric", "trace.coherence"] == 1
            assert [each["outcome"] for each in line.of(trace, "loop_detection")] == ["assumed"]
            assert any(each["level"] == "session" for each in line.results())

    async def test_a_turn_metric_is_evaluated_if_its_applies_check_raises(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: object) -> bool:
            raise ZeroDivisionError("a bug")

        moody: Metric = Metric(
            "turn", "moody", "code", "1", 0.5, "Is it?", "nothing", lambda *_: Score(1.0, "yes"), applies=fail
        )
        monkeypatch.setattr(evaluator_module, "registry", lambda modules: {**registry(), moody.key: moody})
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            await line.settle()
            turns = line.of(trace, "moody")
            assert {each["score"] for each in turns} == {1.0}
            assert line.of(trace, "coherence")
            assert line.telemetry.component_errors() == {("metric", "turn.moody"): len(turns)}

    async def test_a_failing_embedder_loses_only_the_results_that_need_it(self, tmp_path: Path) -> None:
        good, bad = in_one_session(2)
        text = next(a.value.string_value for a in bad.spans[-1].attributes if a.key == "gen_ai.output.messages")
        answer = text.split('"content": "')[1].split('"')[0]
        async with RunningPipeline(tmp_path, embedder=WordEmbedder(fail_on=answer)) as line:
            await line.send(good)
            await line.send(bad)
            await line.settle()
            assert [each["why"] for each in line.of(bad, "coherence")] == ["metric_error"]
            assert [each["outcome"] for each in line.of(good, "coherence")] == ["scored"]
            assert line.telemetry.total("pandaeval.traces", "failed") == 0
            assert line.telemetry.component_errors().keys() == {("embedder", "words-1")}

    async def test_an_unreadable_trace_is_quarantined_once(self, tmp_path: Path) -> None:
        bad, good = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            await line.send(bad)
            await line.send(good)
            damage(line, bad)
            await line.settle()
            assert line.telemetry.total("pandaeval.traces", "failed") == 1
            assert {(each["outcome"], each["why"]) for each in line.results_of(bad)} == {("unscored", "metric_error")}
            assert line.of(good, "coherence")
            await line.restart()
            assert not line.pipeline.open_traces
            assert line.telemetry.total("pandaeval.traces", "failed") == 1

    @pytest.mark.parametrize("restarted", [False, True])
    async def test_a_trace_that_was_changed_on_disk_is_not_scored(self, tmp_path: Path, restarted: bool) -> None:
        bad, good = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            await line.send(bad)
            await line.send(good)
            change_a_letter(line, bad)
            if restarted:
                await line.restart()
            await line.settle()
            assert line.telemetry.counts()["pandaeval.traces", "failed", "DamagedChunkError"] == 1
            assert line.telemetry.total("pandaeval.store.errors", "damaged") == int(restarted)
            found = line.results_of(bad)
            assert {(each["outcome"], each["why"]) for each in found} == {("unscored", "metric_error")}
            assert all("checksum" in each["reason"] for each in found)
            assert line.of(good, "coherence")

    async def test_the_pipeline_starts_with_damaged_spans(self, tmp_path: Path) -> None:
        bad, good = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            await line.send(bad)
            await line.send(good)
            damage(line, bad)
            await line.restart()
            assert line.pipeline.open_traces == 2
            await line.settle()
            assert line.telemetry.total("pandaeval.traces", "failed") == 1
            assert line.of(good, "coherence")

    @pytest.mark.parametrize(
        "statement", ["COMMIT", "BEGIN", "SELECT logs, packed", "SELECT id, unit", "SELECT ?1, members.trace_id"]
    )
    async def test_decisions_are_retried_while_the_disk_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
    ) -> None:
        monkeypatch.setattr(deciding_module, "RETRY_SECONDS", 0.01)
        failures = failing_disk(monkeypatch)
        traces = in_one_session(3)
        async with RunningPipeline(tmp_path) as line:
            for trace in traces:
                await line.send(trace)
            failures[statement] = 4
            await line.settle()
            assert failures[statement] == 0
            assert line.telemetry.total("pandaeval.store.errors", "retried") == 4
            assert line.standing() == as_file(traces)

    async def test_the_pipeline_can_stop_while_the_disk_fails_and_continues_at_the_next_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(deciding_module, "RETRY_SECONDS", 0.01)
        failures = failing_disk(monkeypatch)
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            failures["COMMIT"] = 1_000_000
            line.now += 3600
            await until(lambda: line.telemetry.total("pandaeval.store.errors", "retried") > 0)
            await line.pipeline.stop()
            assert "the next start takes it up again" in caplog.text
            failures["COMMIT"] = 0
            await line.restart()
            await line.settle()
            assert line.standing() == as_file([trace])

    @pytest.mark.parametrize("statement", ["COMMIT", "BEGIN"])
    async def test_spans_are_refused_as_overloaded_while_the_disk_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
    ) -> None:
        failures = failing_disk(monkeypatch)
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            failures[statement] = 1_000_000  # the pipeline's own writes fail as well
            for _ in range(2):
                with pytest.raises(Overloaded, match="is not writable now"):
                    await line.send(trace)
            failures[statement] = 0
            assert await line.send(trace) == Accepted()
            await line.settle()
            assert line.standing() == as_file([trace])

    async def test_late_spans_are_refused_as_overloaded_if_the_decision_cannot_be_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = failing_disk(monkeypatch)
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace, trace.spans[1:])
            await line.wait(QUIET)
            failures["SELECT trace_id, revision"] = 1
            with pytest.raises(Overloaded, match="is not writable now"):
                await line.send(trace, trace.spans[:1])
            assert await line.send(trace, trace.spans[:1]) == Accepted()
            await line.settle()
            assert line.standing() == as_file([trace])

    async def test_scoring_continues_during_a_long_deletion(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, Timing(upkeep=1.0)) as line:
            await line.wait(0.0)
            held = Future[int]()
            monkeypatch.setattr(line.store, "forget", lambda *_, **__: held)
            line.now += 2.0
            await until(lambda: line.is_tidying)
            await line.send(trace)
            line.now += QUIET
            await until(lambda: bool(line.of(trace, "coherence")))
            assert line.is_tidying, "scored during the deletion"
            held.set_result(0)

    async def test_a_stop_does_not_wait_for_a_long_deletion(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with RunningPipeline(tmp_path, Timing(upkeep=1.0)) as line:
            await line.wait(0.0)
            forget, steps = line.store.forget, list[int]()

            def never_done(*arguments: Any, limit: int, **others: Any) -> Future[int]:
                steps.append(limit)
                done = Future[int]()
                forget(*arguments, limit=limit, **others).add_done_callback(lambda _: done.set_result(limit))
                return done

            monkeypatch.setattr(line.store, "forget", never_done)
            line.now += 2.0
            await until(lambda: len(steps) > 2)
            await line.pipeline.stop()
            assert not line.is_tidying

    async def test_a_failed_upkeep_does_not_stop_scoring(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        failures = failing_disk(monkeypatch)
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, Timing(upkeep=1.0)) as line:
            failures["SELECT trace_id, chunks, no FROM traces WHERE decided_at"] = 2
            for _ in range(4):
                await line.wait(2.0)
            assert line.telemetry.total("pandaeval.store.errors", "upkeep") == 2
            await line.send(trace)
            await line.settle()
            assert line.standing() == as_file([trace])

    async def test_an_unexpected_database_error_does_not_stop_the_pipeline(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = failing_disk(monkeypatch, sqlite3.DatabaseError("database disk image is malformed"))
        first, second = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            await line.send(first)
            failures["COMMIT"] = 2  # the decision, then the quarantine
            await line.wait(QUIET)
            assert line.telemetry.total("pandaeval.store.errors", "left") == 1
            await line.send(second)
            await line.wait(QUIET)
            assert line.of(second, "coherence")
            await line.restart()
            await line.settle()
            assert line.standing() == as_file([first, second])

    async def test_a_failing_results_callback_does_not_affect_scoring(self, tmp_path: Path) -> None:
        def fail(_: object) -> None:
            raise ZeroDivisionError("a bug")

        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path, on_results=fail) as line:
            await line.send(trace)
            await line.settle()
            assert line.telemetry.total("pandaeval.traces", "failed") == 0
            assert line.standing() == as_file([trace])

    async def test_a_session_that_cannot_be_scored_does_not_stop_the_pipeline(self, tmp_path: Path) -> None:
        first, second = in_session(in_one_session(1)[0], "broken"), in_one_session(2)[1]
        async with RunningPipeline(tmp_path) as line:
            await line.send(first)
            await line.send(second)
            await line.wait(QUIET)
            spoil_session(line, "broken")
            await line.settle()
            assert {each["session_id"] for each in line.results() if each["level"] == "session"} == {"s"}
            assert not list(line.store.reads.open_sessions())


class TestStopping:
    async def test_open_traces_and_sessions_are_resumed_after_a_restart(self, tmp_path: Path) -> None:
        first, second, third = in_one_session(3)
        async with RunningPipeline(tmp_path) as line:
            await line.send(first)
            await line.wait(QUIET)
            await line.send(second)
            await line.send(third, third.spans[1:])
            await line.restart()
            assert (line.pipeline.open_traces, line.pipeline.open_sessions) == (2, 1)
            await line.send(third, third.spans[:1])
            await line.settle()
            assert line.standing() == as_file([first, second, third])
            assert {each["revision"] for each in line.results()} == {1}

    async def test_downtime_does_not_count_as_idle_time(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            line.now += QUIET - 2
            await line.restart()
            await line.wait(QUIET - 2)
            assert line.pipeline.open_traces == 1
            await line.wait(3.0)
            assert line.pipeline.open_traces == 0

    async def test_a_stop_can_decide_open_traces(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            await line.pipeline.stop(decide=True)
            assert {each["trigger"] for each in line.results()} == {"shutdown"}
            assert not line.pipeline.open_traces + line.pipeline.open_sessions

    async def test_spans_are_refused_after_a_stop(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.pipeline.stop()
            with pytest.raises(Draining):
                await line.send(trace)


class TestIntake:
    async def test_bytes_that_are_no_request_are_malformed(self, tmp_path: Path) -> None:
        async with RunningPipeline(tmp_path) as line:
            with pytest.raises(Malformed):
                await line.pipeline.traces(b"\xff" * 20)

    async def test_a_large_request_is_stored_in_steps_and_every_span_is_accounted_for(self, tmp_path: Path) -> None:
        spans = tiny_spans(6_000, traces=3_000)
        open_items, residuals = set(), set()

        async def look(line: RunningPipeline) -> None:
            while True:
                open_items.add(line.pipeline.open_items)
                residuals.add(residual(line.telemetry, line.pipeline.open_items))
                await asyncio.sleep(0)

        async with RunningPipeline(tmp_path) as line:
            looking = asyncio.create_task(look(line))
            assert await line.pipeline.traces(spans, large=True) == Accepted()
            looking.cancel()
            assert open_items >= {0, 2_000, 4_000}
            assert (line.pipeline.open_traces, line.pipeline.open_items) == (3_000, 6_000)
            assert await line.pipeline.traces(spans, large=True) == Accepted()
            assert line.telemetry.total("pandaeval.spans", "stored") == 6_000
            assert line.telemetry.total("pandaeval.spans", "duplicate") == 6_000
        assert residuals == {0}

    async def test_a_large_request_stores_nothing_if_one_of_its_commits_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spans = tiny_spans(2_500, traces=2_500)
        async with RunningPipeline(tmp_path) as line:
            sizes: list[int] = []
            append = line.store.append

            def counting(chunks: Sequence[Chunk], *more: Any) -> Future[None]:
                sizes.append(len(chunks))
                if len(sizes) == 3:
                    raise StoreFullError(2, 1)
                return append(chunks, *more)

            monkeypatch.setattr(line.store, "append", counting)
            with pytest.raises(Overloaded):
                await line.pipeline.traces(spans, large=True)
            assert sizes == [1_000, 1_000, 500]
            assert line.telemetry.total("pandaeval.store.errors", "refused") == 1, "an alert uses it"
            line.store.put("after", "that").result(10)
            assert not [*line.store.reads.open_chunks()]
            assert await line.pipeline.traces(spans, large=True) == Accepted()
            assert len([*line.store.reads.open_chunks()]) == line.pipeline.open_traces == 2_500

    async def test_spans_are_refused_while_undecided_traces_exceed_max_open_bytes(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, second = Composer(3).trace(), Composer(4).trace()
        async with RunningPipeline(tmp_path, Timing(upkeep=1e9, open_bytes=1000)) as line:
            await line.send(first)
            await line.restart()
            for _ in range(3):
                with pytest.raises(Overloaded, match=r"of 1,000 bytes of memory \(server.max_open_bytes\)"):
                    await line.send(second)
            assert caplog.text.count("senders must retry later: traces without scores take") == 1
            assert not [each for each in line.store.reads.open_chunks() if each.trace_id == second.trace_id]
            await line.wait(200)
            assert await line.send(second) == Accepted()
            await line.settle()
            assert line.standing() == as_file([first, second])

    @pytest.mark.parametrize("dense", [b"\x0a\0" * 6_000, b"\x0a\x04\x12\0\x12\0" * 2_000, tiny_spans(5_000)])
    async def test_a_dense_request_is_accepted_only_as_a_large_request(self, tmp_path: Path, dense: bytes) -> None:
        async with RunningPipeline(tmp_path) as line:
            with pytest.raises(Dense):
                await line.pipeline.traces(dense)
            with pytest.raises(Dense):
                await line.pipeline.logs(dense)
            await line.pipeline.traces(dense, large=True)
            assert line.telemetry.total("pandaeval.spans", "decoded") in (0, 5_000)

    async def test_own_output_is_counted_and_ignored(self, tmp_path: Path) -> None:
        request = output_about(in_one_session(1)).traces
        async with RunningPipeline(tmp_path) as line:
            assert await line.pipeline.traces(request.SerializeToString()) == Accepted()
            sent = len(request.resource_spans[0].scope_spans[0].spans)
            assert line.telemetry.total("pandaeval.spans", "own_output") == sent > 0
            assert not line.pipeline.open_traces

    async def test_a_span_without_a_span_id_is_rejected_alone(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        request = trace.request()
        request.resource_spans[0].scope_spans[0].spans[0].span_id = b""
        async with RunningPipeline(tmp_path) as line:
            answer = await line.pipeline.traces(request.SerializeToString())
            assert answer.rejected == 1
            assert line.telemetry.total("pandaeval.spans", "stored") == len(trace.spans) - 1

    async def test_repeated_spans_do_not_keep_a_trace_open(self, tmp_path: Path) -> None:
        [trace] = in_one_session(1)
        async with RunningPipeline(tmp_path) as line:
            await line.send(trace)
            for _ in range(3):
                await line.wait(4.0)
                await line.send(trace)
            assert not line.pipeline.open_traces

    async def test_a_cancelled_request_does_not_affect_other_requests(self, tmp_path: Path) -> None:
        first, second = in_one_session(2)
        async with RunningPipeline(tmp_path) as line:
            sending = asyncio.create_task(line.send(first))
            await asyncio.sleep(0)
            sending.cancel()
            await line.send(second)
            await line.send(first)
            await line.settle()
            assert line.standing() == as_file([first, second])


def members(line: RunningPipeline, session: str) -> list[bytes]:
    """Return a session's traces in order."""
    return [row.trace_id for row in line.store.reads.session_traces(session)]


def damage(line: RunningPipeline, trace: MadeTrace) -> None:
    """Make a trace's spans unreadable."""
    with open_database(line.folder / "pandaeval.db") as connection:
        connection.execute("UPDATE chunks SET data = x'ffff' WHERE trace_id = ?", (trace.trace_id,))


def change_a_letter(line: RunningPipeline, trace: MadeTrace) -> None:
    with open_database(line.folder / "pandaeval.db") as connection:
        for id_, packed, data in connection.execute(
            "SELECT id, packed, data FROM chunks WHERE trace_id = ?", (trace.trace_id,)
        ).fetchall():
            content = zstandard.ZstdDecompressor().decompress(data) if packed else data
            assert b"gen_ai.operation.name" in content
            changed = content.replace(b"gen_ai.operation.name", b"gen_ai.operation.nome")
            stored = zstandard.ZstdCompressor(write_checksum=True).compress(changed) if packed else changed
            connection.execute("UPDATE chunks SET data = ? WHERE id = ?", (stored, id_))


def spoil_session(line: RunningPipeline, session: str) -> None:
    with open_database(line.folder / "pandaeval.db") as connection:
        connection.execute(
            "UPDATE members SET body = '{}' WHERE session = (SELECT no FROM sessions WHERE session_id = ?)", (session,)
        )


def hold_appends(line: RunningPipeline, monkeypatch: pytest.MonkeyPatch) -> list[Future[None]]:
    """Delay acknowledgements of stored chunks."""
    held: list[Future[None]] = []
    append = line.store.append

    def hold(chunks: Any, *more: Any) -> Future[None]:
        append(chunks, *more).result(10)
        held.append(Future())
        return held[-1]

    monkeypatch.setattr(line.store, "append", hold)
    return held

"""People's verdicts at the pipeline: kept before they are acknowledged, apart from their traces, accounted for."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.pipeline import verdicts
from pandaeval_collector.pipeline.accounting import residual
from pandaeval_collector.receivers import Overloaded, Submitted
from pandaeval_collector.store import people
from pandaeval_otel.wire.labels import HumanLabel
from support.disk import failing_disk
from support.labels import event, request
from support.line import RunningLine
from support.made_traces import Composer

TRACE = Composer(3).trace(4)


def verdict(**said: Any) -> Any:
    return event(trace=TRACE.trace_id, **said)


def bytes_of(*records: Any) -> bytes:
    return bytes(request(*records).SerializeToString())


def kept(line: RunningLine) -> list[HumanLabel]:
    return list(people.labels(line.store.reads.connection()))


def logs(line: RunningLine) -> dict[str, int]:
    return {key[1]: count for key, count in line.telemetry.counts().items() if key[0] == "pandaeval.logs"}


class TestByOtlp:
    async def test_a_verdict_on_a_decided_trace_does_not_open_it_again(self, tmp_path: Path) -> None:
        trace = Composer(3).trace(4)
        async with RunningLine(tmp_path) as line:
            await line.pipeline.traces(trace.request().SerializeToString())
            await line.settle()
            before = line.results()
            for _ in range(2):
                accepted = await line.pipeline.logs(bytes_of(event(label="fail", trace=trace.trace_id)))
                assert accepted.rejected == 0
            await line.settle()
            assert line.pipeline.open_traces == 0
            assert line.results() == before
            assert [(label.unit, label.passed) for label in kept(line)] == [(trace.trace_id.hex(), False)]
            assert logs(line) == {"decoded": 2, "label": 2}
            assert residual(line.telemetry, line.pipeline.open_items) == 0

    async def test_others_have_their_turn_while_many_are_looked_up(self, tmp_path: Path) -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with RunningLine(tmp_path) as line:
            beside = asyncio.create_task(others())
            await line.pipeline.logs(bytes_of(*(event(label="fail", trace=os.urandom(16)) for _ in range(1000))))
            beside.cancel()
        assert turns >= 10

    async def test_they_survive_a_restart(self, tmp_path: Path) -> None:
        async with RunningLine(tmp_path) as line:
            await line.send(TRACE)
            await line.pipeline.logs(bytes_of(verdict(score=0.25, annotator="ada")))
            await line.restart()
            assert [(label.score, label.annotator) for label in kept(line)] == [(0.25, "ada")]

    async def test_what_cannot_be_kept_is_not_acknowledged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = failing_disk(monkeypatch)
        async with RunningLine(tmp_path) as line:
            await line.send(TRACE)
            failures["COMMIT"] = 1
            with pytest.raises(Overloaded):
                await line.pipeline.logs(bytes_of(verdict(label="pass")))
            assert kept(line) == []
            await line.pipeline.logs(bytes_of(verdict(label="pass")))
            assert len(kept(line)) == 1

    async def test_an_unusable_one_is_rejected_and_costs_no_other(self, tmp_path: Path) -> None:
        async with RunningLine(tmp_path) as line:
            await line.send(TRACE)
            accepted = await line.pipeline.logs(bytes_of(verdict(score=7.0), verdict(label="pass")))
            assert (accepted.rejected, len(kept(line))) == (1, 1)
            assert "the score '7.0' is no number from 0 to 1" in accepted.message
            assert logs(line) == {"decoded": 2, "label": 1, "rejected": 1}


class TestWhatAnAgentCanForge:
    async def test_nothing_unless_the_configuration_allows_it(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with RunningLine(tmp_path, labels=False) as line:
            await line.send(TRACE)
            for _ in range(2):
                accepted = await line.pipeline.logs(bytes_of(verdict(label="pass")))
                assert (accepted.rejected, accepted.message) == (1, f"label: {verdicts.OFF}")
            assert kept(line) == []
            assert logs(line) == {"decoded": 2, "rejected": 2}
            assert [record.message for record in caplog.records if "refused" in record.message] == [
                f"a log record that is a person's verdict was refused: {verdicts.OFF} (docs/trust.md#what-labels-are)"
            ]

    async def test_nothing_with_a_submitted_trace_either(self, tmp_path: Path) -> None:
        async with RunningLine(tmp_path, labels=False) as line:
            forged = bytes_of(verdict(label="pass"))
            whole = Submitted(TRACE.trace_id, TRACE.request().SerializeToString(), forged)
            assert await line.pipeline.submit([whole]) == [""]
            await line.settle()
            assert (kept(line), logs(line)) == ([], {"decoded": 1, "rejected": 1})
            assert residual(line.telemetry, line.pipeline.open_items) == 0

    @pytest.mark.parametrize("name", ["task_completion", "session.agent_reliability"])
    async def test_nothing_about_runs_that_do_not_exist(self, tmp_path: Path, name: str) -> None:
        about = {"gen_ai.conversation.id": "no such session"}
        made_up = [event(name, label="pass", annotator=str(number), more=about) for number in range(2_500)]
        async with RunningLine(tmp_path) as line:
            await line.send(TRACE)
            accepted = await line.pipeline.logs(bytes_of(*made_up, verdict(label="fail")))
            assert (accepted.rejected, accepted.message) == (2_500, f"label: {verdicts.UNKNOWN}")
            assert [label.unit for label in kept(line)] == [TRACE.trace_id.hex()]

    async def test_a_session_is_known_once_a_trace_of_it_was_decided(self, tmp_path: Path) -> None:
        trace = Composer(3).trace(4)
        about = {"gen_ai.conversation.id": trace.session or ""}
        said = bytes_of(event("session.agent_reliability", label="pass", more=about))
        async with RunningLine(tmp_path) as line:
            await line.send(trace)
            assert (await line.pipeline.logs(said)).rejected == 1
            await line.settle()
            assert (await line.pipeline.logs(said)).rejected == 0
            assert [label.unit for label in kept(line)] == [trace.session]


async def test_those_that_an_application_submits_with_its_trace(tmp_path: Path) -> None:
    trace = Composer(3).trace(4)
    voted = bytes_of(event(label="pass", annotator="the user", trace=trace.trace_id))
    async with RunningLine(tmp_path) as line:
        whole = Submitted(trace.trace_id, trace.request().SerializeToString(), logs=voted)
        assert await line.pipeline.submit([whole]) == [""]
        alone = Submitted(trace.trace_id, b"", logs=voted, fragment=True)
        assert await line.pipeline.submit([alone]) == [""]
        await line.settle()
        assert [label.annotator for label in kept(line)] == ["the user"]
        assert logs(line) == {"decoded": 2, "label": 2}
        assert residual(line.telemetry, line.pipeline.open_items) == 0

"""People's verdicts at the pipeline: kept before they are acknowledged, apart from their traces, accounted for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pandaeval_collector.pipeline.accounting import residual
from pandaeval_collector.receivers import Overloaded, Submitted
from pandaeval_collector.store import people
from pandaeval_otel.wire.labels import HumanLabel
from support.disk import failing_disk
from support.labels import event, request
from support.line import RunningLine
from support.made_traces import Composer


def bytes_of(*records: Any) -> bytes:
    return bytes(request(*records).SerializeToString())


def kept(line: RunningLine) -> list[HumanLabel]:
    return list(people.labels(line.store.people.reader()))


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

    async def test_they_survive_a_restart(self, tmp_path: Path) -> None:
        async with RunningLine(tmp_path) as line:
            await line.pipeline.logs(bytes_of(event(score=0.25, annotator="ada")))
            await line.restart()
            assert [(label.score, label.annotator) for label in kept(line)] == [(0.25, "ada")]

    async def test_what_cannot_be_kept_is_not_acknowledged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failures = failing_disk(monkeypatch)
        async with RunningLine(tmp_path) as line:
            failures["COMMIT"] = 1
            with pytest.raises(Overloaded):
                await line.pipeline.logs(bytes_of(event(label="pass")))
            assert kept(line) == []
            await line.pipeline.logs(bytes_of(event(label="pass")))
            assert len(kept(line)) == 1

    async def test_an_unusable_one_is_rejected_and_costs_no_other(self, tmp_path: Path) -> None:
        async with RunningLine(tmp_path) as line:
            accepted = await line.pipeline.logs(bytes_of(event(score=7.0), event(label="pass")))
            assert (accepted.rejected, len(kept(line))) == (1, 1)
            assert "the score '7.0' is no number from 0 to 1" in accepted.message
            assert logs(line) == {"decoded": 2, "label": 1, "rejected": 1}


async def test_those_that_an_application_submits_with_its_trace(tmp_path: Path) -> None:
    trace = Composer(3).trace(4)
    verdict = bytes_of(event(label="pass", annotator="the user", trace=trace.trace_id))
    async with RunningLine(tmp_path) as line:
        whole = Submitted(trace.trace_id, trace.request().SerializeToString(), logs=verdict)
        assert await line.pipeline.submit([whole]) == [""]
        alone = Submitted(trace.trace_id, b"", logs=verdict, fragment=True)
        assert await line.pipeline.submit([alone]) == [""]
        await line.settle()
        assert [label.annotator for label in kept(line)] == ["the user"]
        assert logs(line) == {"decoded": 2, "label": 2}
        assert residual(line.telemetry, line.pipeline.open_items) == 0

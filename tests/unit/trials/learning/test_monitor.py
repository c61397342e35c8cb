"""A running collector learns once there are labels enough, and never replaces what it learned."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pandaeval_collector.base.runtime.every import Every
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import load
from pandaeval_collector.labels.learning import Learning, kept
from pandaeval_collector.runs.replay import replay
from pandaeval_collector.runs.settings import evaluator, live_evaluator
from pandaeval_collector.store import Store
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.wire.labels import HumanLabel
from support.learnable import AGENT, METRIC, LearnableSession, sessions, write

MADE = list(sessions(90))


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with sessions that are over, and no label."""
    folder = tmp_path_factory.mktemp("decided")
    traces, _ = write(folder, MADE)
    with contextlib.closing(Store(folder / "data")) as store:
        with TraceFiles(store=store) as run:
            for request in Input(str(traces)).requests():
                run.add(request)
            for _ in replay(run, evaluator(load(None, {}), learning=True)):
                pass
        yield store


def look(store: Store, folder: Path) -> dict[str, float]:
    """The gauges after one look at the labels."""
    telemetry = Telemetry()

    async def once() -> None:
        learning = Every(3600.0, Learning(store, folder, telemetry).look, "learning")
        await asyncio.sleep(0)
        await learning.stop()

    asyncio.run(once())
    return {
        each.instrument.name.removeprefix("pandaeval.learned."): each.value
        for each in telemetry.measures()
        if each.instrument.name.startswith("pandaeval.learned.")
    }


def label(store: Store, made: list[LearnableSession], opposite: bool = False) -> None:
    store.people.put([HumanLabel(each.id, METRIC, None, each.bad == opposite) for each in made], 1.0).result()


def test_it_learns_once_and_proposes_afterwards(decided: Store, tmp_path: Path) -> None:
    assert look(decided, tmp_path) == {}
    label(decided, MADE[:30])
    assert look(decided, tmp_path) == {"labels": 30.0, "proposed": 0.0}
    assert not list(tmp_path.iterdir())
    label(decided, MADE[:50])
    (tmp_path / "file").write_text("")
    assert look(decided, tmp_path / "file" / "below") == {}, "a folder that cannot be made ends nothing"
    assert look(decided, tmp_path)["labels"] == 50.0
    model = kept(tmp_path, "session", AGENT)
    assert model is not None
    label(decided, MADE)
    grown = look(decided, tmp_path)
    assert (grown["labels"], grown["proposed"]) == (90.0, 1.0)
    assert grown["auroc"] == pytest.approx(model.evidence.same_length.value if model.evidence.same_length else None)
    assert kept(tmp_path, "session", AGENT) == model


def test_runs_are_counted_only_where_somebody_learns(tmp_path: Path) -> None:
    off = load(None, {"PANDAEVAL_LEARN__FOLDER": str(tmp_path), "PANDAEVAL_LEARN__ENABLED": "false"})
    on = load(None, {"PANDAEVAL_LEARN__FOLDER": str(tmp_path)})
    assert not evaluator(on).counts_courses, "a file is scored, and nothing was learned"
    assert not live_evaluator(off).counts_courses
    assert live_evaluator(on).counts_courses
    assert evaluator(off, learning=True).counts_courses

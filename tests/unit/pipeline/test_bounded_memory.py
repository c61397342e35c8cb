"""Bounded memory of a pipeline."""

from __future__ import annotations

import gc
import sqlite3
import weakref
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from pandaeval_collector.pipeline.timing import Timing
from support.line import RunningPipeline
from support.made_traces import Composer

_TRACES = 40
_OTHERS = (type, ModuleType, FunctionType, sqlite3.Connection)
"""Ignored objects, such as the periodically cleared cursors of a connection."""


async def test_no_collection_grows_with_the_number_of_decided_traces(tmp_path: Path) -> None:
    composer = Composer(5)
    async with RunningPipeline(tmp_path) as line:
        await _decided(line, composer, _TRACES)
        before = _sizes(line.pipeline, spared=[line.embedder])
        await _decided(line, composer, 3 * _TRACES)
        after = _sizes(line.pipeline, spared=[line.embedder])
    grown = {label: now - before.get(id_, (0, ""))[0] for id_, (now, label) in after.items()}
    assert len(after) > 50, "the pipeline's collections were not found"
    assert {label: more for label, more in grown.items() if more >= _TRACES} == {}


async def test_upkeep_frees_objects_in_reference_cycles(tmp_path: Path) -> None:
    class Node:
        pass

    gc.disable()
    try:
        node = Node()
        node.next = node  # type: ignore[attr-defined]
        left = weakref.ref(node)
        del node
        async with RunningPipeline(tmp_path, Timing(upkeep=1.0)) as line:
            await line.wait(0.5)
            assert left() is not None
            await line.wait(2.0)
            assert left() is None
    finally:
        gc.enable()


async def _decided(line: RunningPipeline, composer: Composer, traces: int) -> None:
    for _ in range(traces):
        await line.send(composer.trace())
    await line.settle()


def _sizes(root: object, spared: Iterable[object]) -> dict[int, tuple[int, str]]:
    """Return length and first item of each reachable collection."""
    found: dict[int, tuple[int, str]] = {}
    seen, ahead = {id(each) for each in spared}, [root]
    while ahead:
        each: Any = ahead.pop()
        if id(each) in seen or isinstance(each, _OTHERS):
            continue
        seen.add(id(each))
        if isinstance(each, dict | list | set):
            found[id(each)] = len(each), f"{type(each).__name__} of {str(next(iter(each), ''))[:60]}"
        ahead += gc.get_referents(each)
    return found

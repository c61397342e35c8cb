"""Labelled recordings, scored as ``pandaeval evaluate`` does."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pandaeval_collector.config import load
from pandaeval_collector.pipeline.line.decision import Conclusion
from pandaeval_collector.runs.settings import evaluator
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_lab.replay.files import BadLine, Input, Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

SESSION = re.compile(r'"gen_ai\.conversation\.id","value":\{"stringValue":"([^"]+)"')
TRACE = re.compile(r'"traceId":"([0-9a-f]{32})"')
LABELS = {
    "tau-bench": "task_success",
    "tau2-pairs": "task_success",
    "agentrx-tau": "task_success",
    "bfcl": "tool_calls_correct",
    "otel-captures": None,
}
"""The label of a good unit; ``None``: no label."""
LARGEST = "baseline: "
Told = Callable[[int, int], None]


@dataclass(slots=True)
class Scored:
    """A unit with its scores; of trace metrics the worst. ``calls``, ``answer`` and ``spans``: its size."""

    good: bool | None
    scores: dict[str, float] = field(default_factory=dict)
    failed: dict[str, bool] = field(default_factory=dict)
    calls: int = 0
    answer: int = 0
    spans: int = 0

    def baselines(self) -> dict[str, float]:
        """Return trivial scores: less is better."""
        return {
            LARGEST + "fewer calls": -self.calls,
            LARGEST + "shorter answers": -self.answer,
            LARGEST + "fewer spans": -self.spans,
        }


def default_evaluator() -> Evaluator:
    """Return the default evaluator of ``pandaeval evaluate``."""
    return evaluator(load(None, {}))


def labelled(folder: Path, scorer: Evaluator, limit: int | None, on_progress: Told) -> list[Scored]:
    """Return the units of a set in ``shared/data``, up to ``limit``."""
    good = _labels(folder)
    path = folder / "traces.jsonl.xz"
    chosen = _drawn(path, good, limit) if limit is not None else None
    units: dict[str, Scored] = {}
    with TraceFiles() as run:
        requests = list(_chosen(path, chosen))
        for done, request in enumerate(requests):
            run.add(request)
            on_progress(done, 2 * len(requests))
        _score(
            run, scorer, lambda session, trace: units.setdefault(_unit(good, session, trace), Scored(None)), on_progress
        )
    for name, unit in units.items():
        unit.good = good.get(name)
    return [unit for unit in units.values() if unit.good is not None or LABELS[folder.name] is None]


def capture(path: Path, scorer: Evaluator, good: bool) -> Scored:
    unit = Scored(good)
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            run.add(request)
        _score(run, scorer, lambda session, trace: unit, lambda done, total: None)
    return unit


def _score(run: TraceFiles, scorer: Evaluator, unit: Callable[[str | None, str], Scored], on_progress: Told) -> None:
    seen, total = 0, sum(map(len, run.due()))

    def weigh(decision: Conclusion) -> None:
        nonlocal seen
        for trace in decision.traces:
            each = unit(trace.session_id, trace.trace_id)
            each.calls += len(trace.tool_calls)
            each.answer += sum(len(turn.assistant or "") for turn in trace.turns)
            each.spans += len(trace.spans)
        seen += len(decision.runs)
        on_progress(total + seen, 2 * total)

    for result in replay(run, scorer, on_decided=weigh):
        if result.outcome != "scored" or result.score is None:
            continue
        each, name = unit(result.unit.session_id, result.unit.trace_id), f"{result.unit.level}.{result.metric}"
        each.scores[name] = min(each.scores.get(name, 1.0), result.score)
        each.failed[name] = each.failed.get(name, False) or result.success is False


def _unit(good: dict[str, bool], session: str | None, trace: str) -> str:
    return session if session is not None and (session in good or trace not in good) else trace


def _labels(folder: Path) -> dict[str, bool]:
    """Return good labels by session or trace ID."""
    wanted, found = LABELS[folder.name], {}
    with lzma.open(folder / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["name"] == wanted:
                found[row["session_id"] or row["trace_id"]] = bool(row["value"])
    return found


def _drawn(path: Path, good: dict[str, bool], limit: int) -> set[str]:
    names = sorted(good) or sorted({_id(line) for line in _lines(path)})
    random.Random(20).shuffle(names)
    return set(names[:limit])


def _chosen(path: Path, chosen: set[str] | None) -> Iterator[Request]:
    """Yield the requests of the chosen units."""
    if chosen is None:
        for request in Input(str(path)).requests():
            if isinstance(request, BadLine):
                raise ValueError(f"{request.place}: {request.reason}")
            yield request
        return
    from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json

    for line in _lines(path):
        if not chosen.isdisjoint({_id(line), _trace_id(line)}):
            yield Request(False, traces_from_json(decode_json(line.encode())).SerializeToString())


def _lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from lines


def _id(line: str) -> str:
    found = SESSION.search(line)
    return found[1] if found else _trace_id(line)


def _trace_id(line: str) -> str:
    found = TRACE.search(line)
    return found[1] if found else ""

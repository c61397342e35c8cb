"""A store whose metrics, rulings, prompt and judge changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from pandaeval_collector.store import DecidedTrace, ListedRow, ResultRow, SessionTraceRow, Store, WriteSet
from support.results import result

HOUR_MS = 3_600_000
BEGAN = int(time.time() * 1000) - 45 * HOUR_MS


class Measured(NamedTuple):
    """A run with results. ``version``, ``prompt``, ``judge``: of its session's verdict; ``loop``: of `tool_loop`."""

    agent: str
    version: str = "1"
    prompt: str | None = "7"
    judge: str | None = "openai/small"
    loop: str = "1"


def fill(folder: Path, runs: Sequence[Measured]) -> Store:
    """A store in ``folder`` with a run per hour, each in its own session; close it."""
    store, changes = Store(folder, "off"), WriteSet()
    for at, run in enumerate(runs):
        id_, session, began = f"{at + 1:032x}", f"session-{at}", BEGAN + at * HOUR_MS
        trace = bytes.fromhex(id_)
        facts: dict[str, Any] = {"id": id_, "at": began, "in": "q", "out": "a", "agent": run.agent, "us": 1}
        facts |= {"spans": 1, "llm": 1, "tools": 0}
        changes.traces.append(DecidedTrace(trace, 1, True, "d", frozenset(), [], 0))
        changes.session_traces.append(SessionTraceRow(trace, session, began * 1_000_000, began * 1_000_000, b"{}"))
        changes.touched.add(session)
        changes.listed.append(ListedRow(trace, began, run.agent, "shop", "", "", False, orjson.dumps(facts)))
        changes.results.append(_result(id_, id_, session, "trace.tool_loop", run.loop, None, {}))
        metadata = {} if run.prompt is None else {"judge": {"prompt_version": run.prompt}}
        verdict = _result(session, id_, session, "session.correctness", run.version, run.judge, metadata)
        changes.results.append(verdict)
    store.commit(changes).result()
    return store


def _result(
    unit: str, id_: str, session: str, metric: str, version: str, model: str | None, metadata: dict[str, Any]
) -> ResultRow:
    level, _, name = metric.partition(".")
    body = {"id": f"{metric} {unit}", "level": level, "metric": name, "success": True, "label": "pass", "why": None}
    body |= {"trace_id": id_, "session_id": session, "metadata": metadata}
    body["evaluator"] = {"kind": "llm" if model else "code", "version": version, "model": model}
    row = ResultRow(f"{metric} {unit}", unit, metric, 1, orjson.dumps({**result().to_dict(), **body}))
    row.success, row.signal, row.verdict = True, 1.0, "passed"
    return row

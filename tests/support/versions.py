"""A store with two versions of an agent, which differ in loops, crashes, verdicts, latency and cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from pandaeval_collector.store import (
    DecidedTrace,
    FailureGroupRow,
    ListedRow,
    ResultRow,
    SessionTraceRow,
    Store,
    WriteSet,
)
from support.results import result

NOW = 1_700_000_000_000
RUNS = {"1": 70, "2": 80}
LOOPS = {"1": 14, "2": 40}
CRASHES = {"1": 3, "2": 0}
LIES = {"1": 0, "2": 5}
"""Of the first runs of a version."""
WRONG, UNCLEAR = {"1": 14, "2": 32}, {"1": 2, "2": 0}
"""Verdicts on sessions, each with a single run: on the last, and on the first."""
GROUPS = {
    "trace.tool_loop": "a" * 12,
    "trace.response": "b" * 12,
    "trace.grounding": "c" * 12,
    "session.correctness": "d" * 12,
}


def trace_id(version: str, at: int) -> str:
    """The ID of a run of a version."""
    return f"{version}{at:031x}"


def fill(folder: Path) -> Store:
    """A store in ``folder`` with the runs; close it."""
    store, changes = Store(folder, "off"), WriteSet()
    for version, count in RUNS.items():
        for at in range(count):
            _run(changes, version, at)
    for metric, id_ in GROUPS.items():
        row = FailureGroupRow(id_, metric, metric, metric, metric, "high", "desk", "shop", metric, 1, 0.0, 0.0)
        changes.failures.append(row)
    store.commit(changes).result()
    return store


def _run(changes: WriteSet, version: str, at: int) -> None:
    id_, session = trace_id(version, at), f"session-{version}-{at}"
    trace, began = bytes.fromhex(id_), NOW + int(version) * 86_400_000 + at * 1000
    facts: dict[str, Any] = {"id": id_, "at": began, "in": "=2+3", "out": f"answer {at}", "agent": "desk"}
    facts |= {"us": 1_000_000 * int(version) + at, "tokens": [100 * int(version), at], "usd": 0.01 * int(version)}
    facts |= {"spans": 2, "llm": 1, "tools": 1}
    changes.traces.append(DecidedTrace(trace, 1, True, "d", frozenset(), [], 0))
    changes.session_traces.append(SessionTraceRow(trace, session, began * 1_000_000, began * 1_000_000, b"{}"))
    changes.touched.add(session)
    listed = ListedRow(trace, began, "desk", "shop", f"env-{version}", "mia" * (at == 0), False, orjson.dumps(facts))
    changes.listed.append(replace(listed, attributes=(f"service.version={version}",)))
    found = {"trace.tool_loop": LOOPS, "trace.response": CRASHES, "trace.grounding": LIES}
    for metric, failing in found.items():
        changes.results.append(_result(id_, id_, session, metric, at >= failing[version]))
    verdict = None if at < UNCLEAR[version] else at < RUNS[version] - WRONG[version]
    changes.results.append(_result(session, id_, session, "session.correctness", verdict))


def _result(unit: str, id_: str, session: str, metric: str, passed: bool | None) -> ResultRow:
    level, _, name = metric.partition(".")
    label = {True: "pass", False: metric, None: "unclear"}[passed]
    body = {"id": f"{metric} {unit}", "level": level, "metric": name, "outcome": "scored", "score": float(bool(passed))}
    body |= {"success": passed, "label": label, "reason": f"-{metric} of {unit}", "why": None, "trace_id": id_}
    body |= {"session_id": session, "span_ids": [metric], "agent": "desk", "metadata": {}}
    if passed is False:
        body["metadata"] = {"failure_group": {"id": GROUPS[metric], "severity": "high"}, "blame": {"trace_id": id_}}
    row = ResultRow(f"{metric} {unit}", unit, metric, 1, orjson.dumps({**result().to_dict(), **body}))
    row.success, row.signal = passed, float(bool(passed))
    row.verdict = {True: "passed", False: "failed", None: "unclear"}[passed]
    return row

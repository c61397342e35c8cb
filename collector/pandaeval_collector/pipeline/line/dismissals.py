"""Findings of code that a person dismissed as false. They neither pass nor fail, and no rate includes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from pandaeval_collector.base.result import DISMISSED, DISPUTED, EvaluatorInfo, Result, Unit
from pandaeval_collector.base.score import Score
from pandaeval_collector.store import Dismissal, FailureGroupRow, ResultRow, StoreReader

_RESPONSE = "trace.response"
ORIGINAL, _UNDISPUTED = "dismissed", "undisputed"
_DISPUTED_BY = " Disputed by "
_OURS = ("failure_group", "threshold", "success")
"""Metadata that the collector adds to a result."""


def kept(results: Iterable[Result], dismissed: frozenset[tuple[str, str]]) -> list[Result]:
    """Return the results, and mark dismissed failures. ``dismissed``: units and metrics."""
    return [
        as_dismissed(each) if each.success is False and (each.unit.id, each.key) in dismissed else each
        for each in results
    ]


def as_dismissed(result: Result) -> Result:
    """Return a failed result as a dismissed result, which remembers its label and id."""
    finding = _score(result)
    metadata = {**finding.metadata, ORIGINAL: {"id": result.id, "label": finding.label}}
    own = replace(finding, label=DISMISSED, failed=False, metadata=metadata)
    return replace(result, id=_id(result, DISMISSED), finding=own)


class Dismissals:
    """Finds the results that a dismissal changes. Only reads the store."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store

    def changed(self, asked: Dismissal) -> list[Result]:
        """Return the changed finding, and the verdicts that were disputed because of it."""
        unit, key = asked.label.unit, asked.label.metric
        row = self._store.newest_results([unit]).get((unit, key))
        if row is None or (row.success != 0 and not asked.undone):
            return []
        result = _read(row)
        if not asked.undone:
            changed = as_dismissed(result)
        elif result.label == DISMISSED:
            changed = _restored(result)
        else:
            return []
        about = changed.unit
        verdicts = self.verdicts(about.trace_id, about.session_id, asked.undone) if key == _RESPONSE else ()
        return [changed, *verdicts]

    def counted(self, finding: Result, more: int) -> list[FailureGroupRow]:
        """Return the finding's group with ``more`` failures added."""
        groups = self._store.failure_groups()
        return [replace(group, count=more) for group in groups if group.id == finding.failure_group]

    def verdicts(self, trace_id: str, session: str | None, undone: bool) -> Iterator[Result]:
        """Yield verdicts that a trace's dismissed ``response`` disputed. ``undone``: dispute them again."""
        for unit in filter(None, (trace_id, session)):
            level = "trace" if unit == trace_id else "session"
            row = self._store.newest_results([unit]).get((unit, f"{level}.correctness"))
            held = {} if row is None else orjson.loads(row.body)["metadata"]
            against = held.get(_UNDISPUTED if undone else "disputed_by")
            if row is not None and against and against["trace_id"] == trace_id:
                yield _disputed(row, against) if undone else _undisputed(row, against)


def _undisputed(row: ResultRow, against: dict[str, str]) -> Result:
    verdict = _read(row)
    finding = _score(verdict)
    metadata = {**finding.metadata, _UNDISPUTED: against, ORIGINAL: {"id": verdict.id, "label": DISPUTED}}
    del metadata["disputed_by"]
    own = replace(finding, label=None, reason=finding.reason.rpartition(_DISPUTED_BY)[0], metadata=metadata)
    return replace(verdict, id=_id(verdict, _UNDISPUTED), finding=own)


def _disputed(row: ResultRow, against: dict[str, str]) -> Result:
    verdict = _restored(_read(row))
    finding = _score(verdict)
    metadata = {key: value for key, value in finding.metadata.items() if key != _UNDISPUTED}
    reason = f"{finding.reason}{_DISPUTED_BY}{against['metric']}: {against['reason']}"
    own = replace(finding, reason=reason, metadata={**metadata, "disputed_by": against}, failed=False)
    return replace(verdict, finding=own)


def _restored(result: Result) -> Result:
    finding = _score(result)
    metadata = dict(finding.metadata)
    original = metadata.pop(ORIGINAL)
    own = replace(finding, label=original["label"], failed=True, metadata=metadata)
    return replace(result, id=original["id"], finding=own)


def _read(row: ResultRow) -> Result:
    body: dict[str, Any] = orjson.loads(row.body)
    group = body["metadata"].get("failure_group") or {}
    unit = Unit(
        level=body["level"],
        id=row.unit,
        **{name: body[name] for name in ("trace_id", "span_id", "session_id", "agent", "service", "environment")},
        revision=row.revision,
        trigger=body["trigger"],
        late_spans=body["late_spans"],
    )
    finding = Score(
        body["score"],
        body["reason"],
        {key: value for key, value in body["metadata"].items() if key not in _OURS},
        body["raw"],
        body["scale"],
        None if body["label"] in ("pass", "fail") else body["label"],
        body["success"] is False,
        body["coverage"],
        tuple(body["span_ids"]),
    )
    return Result(
        id=row.id,
        metric=body["metric"],
        unit=unit,
        finding=finding,
        evaluator=EvaluatorInfo(**body["evaluator"]),
        threshold=body["threshold"],
        revision=row.revision,
        final=body["final"],
        duration_ms=body["duration_ms"],
        time=datetime.fromisoformat(body["time"]),
        cost_usd=body["cost_usd"],
        tokens=body["tokens"],
        failure_group=group.get("id"),
        failure_severity=group.get("severity"),
    )


def _score(result: Result) -> Score:
    assert isinstance(result.finding, Score)
    return result.finding


def _id(result: Result, mark: str) -> str:
    return hashlib.blake2b(f"{result.id} {mark}".encode(), digest_size=16).hexdigest()

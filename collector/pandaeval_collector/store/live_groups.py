"""Groups new failures in a running collector."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import Embedder, load
from pandaeval_collector.analysis.embedding.litellm_embedding import SCHEME as HOSTED
from pandaeval_collector.base.result import Result
from pandaeval_collector.store import FailureGroupRow, WriteSet
from pandaeval_collector.store.failure_groups import MOST_GROUPS
from pandaeval_collector.store.failures import Failure, failure_of, group_id, plain
from pandaeval_otel.base.component_errors import EMBEDDER, ERRORS

SURE, UNLIKE = 0.8, 0.5
"""Cosine limits for failures with the same label. From the first on, the cause is the same; below the second, it
differs. In between, a judge decides, if configured."""
NEAR = 0.65
"""Without a judge, failures with at least this cosine have the same cause."""
_MOST_CANDIDATES = 5
"""Maximum groups among which a judge chooses."""
_TEXTS = 64
"""Texts of a group whose vectors are cached."""


@dataclass(slots=True)
class _Live:
    row: FailureGroupRow
    vector: NDArray[np.float32]
    same: set[str] = field(default_factory=set)


class LiveGroups:
    """The failure groups of a store; thread-safe.

    Compares failures within metric, label, tool and agent. Ids follow from the first failure.
    """

    def __init__(self, embedder: Embedder, known: Iterable[FailureGroupRow] = ()) -> None:
        """``known``: stored groups, newest first. A hosted embedder is replaced, to avoid waiting."""
        self._embedder = load("embedded") if embedder.id.startswith(f"{HOSTED}:") else embedder
        self._lock = threading.Lock()
        self._groups: OrderedDict[str, _Live] = OrderedDict()
        rows = [*known][::-1]
        vectors = self._vectors([row.cause or plain(row.text) for row in rows]) if rows else []
        for row, vector in zip(rows, vectors, strict=True):
            self._groups[row.id] = _Live(row, vector, {row.cause or plain(row.text)})

    def candidates(self, failure: Failure) -> list[tuple[float, FailureGroupRow]]:
        """Return similar groups with their cosines, most similar first. A certain group is returned alone."""
        with self._lock:
            near = self._near(failure)
        return near[:1] if near and near[0][0] >= SURE else near[:_MOST_CANDIDATES]

    def place(self, failure: Failure, judged_id: str | None = None) -> FailureGroupRow:
        """Return a failure's group, perhaps new. ``said``: the judge's earlier id, ``""`` for none."""
        with self._lock:
            live = self._known(failure, judged_id) or self._begin(failure)
            if len(live.same) < _TEXTS:
                live.same.add(_compared(failure))
            self._groups.move_to_end(live.row.id)
            while len(self._groups) > MOST_GROUPS:
                self._groups.popitem(last=False)
            return live.row

    def _known(self, failure: Failure, judged_id: str | None) -> _Live | None:
        live = self._groups.get(group_id(failure.result))  # the decision is repeated
        if live is None and judged_id:
            live = self._groups.get(judged_id)
        if live is not None or judged_id == "":
            return live
        near = self._near(failure)
        if near and near[0][0] >= (SURE if failure.cause else NEAR):
            return self._groups[near[0][1].id]
        return None

    def _begin(self, failure: Failure) -> _Live:
        row = FailureGroupRow(
            id=group_id(failure.result),
            metric=failure.metric,
            label=failure.label,
            title=failure.title,
            description=failure.reason,
            severity=failure.weight,
            agent=failure.agent,
            service=failure.service,
            text=failure.error or failure.reason,
            tool=failure.where,
            cause=failure.cause,
            count=0,
            first_at=0.0,
            last_at=0.0,
        )
        [vector] = self._vectors([_compared(failure)])
        live = self._groups[row.id] = _Live(row, vector)
        return live

    def _near(self, failure: Failure) -> list[tuple[float, FailureGroupRow]]:
        about = (failure.metric, failure.label, failure.where, failure.agent)
        rows = ((each, each.row) for each in self._groups.values())
        rivals = [each for each, row in rows if (row.metric, row.label, row.tool, row.agent) == about]
        text = _compared(failure)
        for each in rivals:
            if text in each.same:
                return [(1.0, each.row)]
        if not rivals:
            return []
        [vector] = self._vectors([text])
        cosines = [float(each.vector @ vector) if each.vector.shape == vector.shape else 0.0 for each in rivals]
        near = [(cosine, each.row) for cosine, each in zip(cosines, rivals, strict=True) if cosine >= UNLIKE]
        return sorted(near, key=lambda pair: -pair[0])

    def _vectors(self, texts: list[str]) -> list[NDArray[np.float32]]:
        try:
            return [*self._embedder.embed(texts)]
        except Exception as error:  # noqa: BLE001 - without vectors, failures with the same text share a group
            ERRORS.note(EMBEDDER, self._embedder.id, error)
            return [np.zeros(0, np.float32)] * len(texts)


def _compared(failure: Failure) -> str:
    return failure.cause or plain(failure.reason)


def filed(groups: LiveGroups, result: Result, is_new: bool, changes: WriteSet) -> Result:
    """Return the result with its group.

    ``is_new``: add the failure to ``changes``. An existing ``failure_group`` is a judge's choice.
    """
    failure = failure_of(result) if result.success is False else None
    if failure is None:
        return result
    row = groups.place(failure, result.failure_group)
    if is_new:
        scored_at = result.time.timestamp()
        at = min(result.unit.end_ns / 1e9 or scored_at, scored_at)  # time of the run, but not in the future
        changes.failures.append(replace(row, count=1, first_at=at, last_at=at))
    return replace(result, failure_group=row.id, failure_severity=row.severity)

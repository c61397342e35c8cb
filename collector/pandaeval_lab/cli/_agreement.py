"""Compares other evaluators' results with ours."""

from __future__ import annotations

from collections import Counter

from rich.console import Console

from pandaeval_collector.base.result import Result
from pandaeval_collector.cli._output import print_table
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_lab.cli._stages import Stage
from pandaeval_lab.cli._summary import Document
from pandaeval_otel.model import OtherResult

_PASSES = frozenset({"pass", "passed", "true", "yes", "good", "correct", "ok", "success"})
_FAILS = frozenset({"fail", "failed", "false", "no", "bad", "incorrect", "error", "failure"})
_EVEN = 0.5
"""The score of an evaluator without a label, from which on a run passes."""
_SHOWN = ((True, True), (False, False), (False, True), (True, False))
"""Pairs of its verdict and ours, in the order of the columns."""
_COLUMNS = ("evaluator", "result", "runs", "both pass", "both fail", "only it fails", "only we fail")


class Agreement(Stage):
    def __init__(self) -> None:
        self._others: dict[str, tuple[OtherResult, ...]] = {}
        self._failed: set[str] = set()
        self._scored: set[str] = set()

    def keep(self, run: ScoredTrace) -> bool:
        if run.trace is not None and run.trace.evaluations:
            self._others[run.trace.trace_id] = run.trace.evaluations
        return True

    def take(self, result: Result, document: Document) -> None:
        if document["level"] in ("trace", "turn") and document["success"] is not None:
            self._scored.add(document["trace_id"])
            if not document["success"]:
                self._failed.add(document["trace_id"])

    def show(self, out: Console) -> None:
        counts: dict[tuple[str, str], Counter[tuple[bool, bool]]] = {}
        for trace_id in self._others.keys() & self._scored:
            for other in self._others[trace_id]:
                verdict = passes(other)
                if verdict is not None:
                    both = counts.setdefault((other.source, other.name), Counter())
                    both[verdict, trace_id not in self._failed] += 1
        rows = [
            [source, name, both.total(), *(both[each] for each in _SHOWN)]
            for (source, name), both in sorted(counts.items())
        ]
        if rows:
            print_table(_COLUMNS, rows, on=out, title="Agreement with other evaluators")


def passes(other: OtherResult) -> bool | None:
    """Return whether a foreign result passes: by its label, else its score (0..1)."""
    label = other.label.strip().lower()
    if label in _PASSES or label in _FAILS:
        return label in _PASSES
    if other.score is None or not 0 <= other.score <= 1:
        return None
    return other.score >= _EVEN

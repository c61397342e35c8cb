"""The index of the page: sessions, traces, results and metrics.

The report's file extends it (:mod:`pandaeval_lab.report.page`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.results import INLINE, ShownResult, is_inline, shown, spelled_out, verdict
from pandaeval_collector.show.view.unscored import unjudged_text
from pandaeval_collector.store.listed import NO_SCORE, NOT_FAILED
from pandaeval_collector.store.listed_pages import Listed, ListedSession


@dataclass(slots=True)
class LiveIndex:
    """Builds an index: call :meth:`unit` or :meth:`trace` in display order, then :meth:`made`.

    ``members``: trace ids by session.
    """

    members: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _traces: list[dict[str, Any]] = field(default_factory=list)
    _sessions: list[dict[str, Any]] = field(default_factory=list)
    _at: dict[str, int] = field(default_factory=dict)
    _order: list[list[Any]] = field(default_factory=list)
    _results: list[ShownResult] = field(default_factory=list)

    def trace(
        self, row: Listed, brief: bool = False, of_session: Iterable[Mapping[str, Any]] = ()
    ) -> list[ShownResult]:
        """Add a trace and return its results. ``brief``: for a list. ``of_session``: session results."""
        self._order.append(["t", len(self._traces)])
        results = self._trace(row, brief)
        if row.session is not None:
            self._session(row.session, of_session)
        return results

    def unit(self, unit: ListedSession, rows: Iterable[Listed]) -> None:
        """Add a session with some traces, or a trace without session."""
        if unit.id is None:
            for row in rows:
                self.trace(row, brief=True)
            return
        at = self._session(unit.id, unit.results.values())
        self._sessions[at] |= {
            "count": unit.traces,
            "failing": unit.failed_traces,
            "states": [_state(badness) for badness in unit.badness],
            "first": unit.first_ms,
            "last": unit.last_ms,
            "us": unit.us,
            "tokens": unit.tokens,
            "usd": unit.usd,
            "unpriced": unit.unpriced,
            "asked": unit.question,
        }
        for row in rows:
            self._sessions[at]["traces"].append(len(self._traces))
            self._trace(row, brief=True)
        self._order.append(["s", at])

    def made(self, judge: str | None, modules: tuple[str, ...]) -> dict[str, Any]:
        """Return the JSON-ready index.

        ``order``: ``["s", position]`` for a session, ``["t", position]`` for a trace. ``judge``: configured model.
        ``modules``: for :func:`registry`.
        """
        return {
            "metrics": metrics_of(self._results, modules),
            "sessions": self._sessions,
            "traces": self._traces,
            "order": self._order,
            "unasked": unjudged_text(self.tallies(), len(self._traces), judge),
        }

    def tallies(self) -> dict[str, OutcomeCounts]:
        tallies: dict[str, OutcomeCounts] = {}
        for result in self._results:
            short = result.short
            if short.get("selected"):
                continue
            counts = tallies.setdefault(short["metric"], OutcomeCounts())
            counts.add(short["outcome"], short.get("success"), short.get("why"), label=short.get("label"))
        return tallies

    def _session(self, session_id: str, stored_results: Iterable[Mapping[str, Any]] = ()) -> int:
        if session_id not in self._at:
            self._at[session_id] = len(self._sessions)
            known = {"members": [*self.members[session_id]]} if session_id in self.members else {}
            shown_id, href = excerpt(session_id, 200), quote(session_id, safe="")
            self._sessions.append({"id": shown_id, "href": href, "traces": [], "results": [], **known})
        results = [shown(stored_result) for stored_result in stored_results]
        self._results += results
        self._sessions[self._at[session_id]]["results"] += [session_result(result) for result in results]
        return self._at[session_id]

    def _trace(self, row: Listed, brief: bool) -> list[ShownResult]:
        results = [shown(stored_result, brief) for stored_result in row.results.values()]
        trace = facts_of(row) | {"results": [result.short for result in results]}
        if row.session is not None:
            trace["session"] = self._session(row.session)
        self._results += results
        self._traces.append(trace)
        return results


def facts_of(row: Listed) -> dict[str, Any]:
    facts = {key: held for key, held in row.facts.items() if key != "session"}
    return facts if row.session is None else {**facts, "session": row.session}


def session_result(result: ShownResult) -> dict[str, Any]:
    """Return a full session result; if no judge had a part, with its meaning in words."""
    whole = {**result.short, **result.full}
    if not is_inline(result.full.get("metadata")) or "label" not in result.short:
        return whole
    label = result.short["label"]
    return {**whole, "basis": INLINE, "says": verdict(label), "spelled": spelled_out(label, result.full["reason"])}


def metrics_of(results: Iterable[ShownResult], modules: tuple[str, ...]) -> dict[str, Any]:
    """Return metrics with results, and known others (``asked: false``). ``scored_by``: scores by code and by judge."""
    thresholds: dict[str, Any] = {}
    judges: defaultdict[str, set[str]] = defaultdict(set)
    scored_by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        key = result.short["metric"]
        thresholds.setdefault(key, result.full.get("threshold"))
        if "model" in result.full:
            judges[key].add(result.full["model"])
        if result.short["outcome"] == "scored":
            scored_by[key][result.full["by"]] += 1
    known = registry(modules)
    shapes = {}
    for key in sorted({*known, *thresholds}):
        level, _, name = key.partition(".")
        shape: dict[str, Any] = {"name": name, "level": level, "kind": None, "question": "", "needs": ""}
        if metric := known.get(key):
            shape |= {"kind": metric.kind, "question": metric.question, "needs": metric.needs}
        shapes[key] = shape | {
            "threshold": thresholds.get(key),
            "models": sorted(judges[key]),
            "scored_by": scored_by[key],
            "asked": key in thresholds,
        }
    return shapes


def _state(badness: float) -> float | str:
    if badness < NOT_FAILED:
        return min(0.49, badness)
    return "none" if badness >= NOT_FAILED + NO_SCORE else max(0.5, badness - NOT_FAILED)

"""The part of the report that is there when it opens: everything but the spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.report.cures import INLINE, cure, is_inline, judged, spelled_out, unasked, verdict
from pandaeval_collector.show.report.results import ShownResult
from pandaeval_collector.show.report.rows import ReportSession, ReportTrace, rank

_MAX_REASONS = 3


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """Where the report comes from. ``without_agents``: traces in which no agent worked; they are not shown. ``where``:
    the only traces that were looked at, as ``--where`` says it; ``left_out``: how many others there are. ``failures``:
    groups of them, gravest first: ``RootCause.to_dict`` and ``examples`` with ``place`` and ``trace``. ``modules``:
    the user's own metrics, as :func:`registry` takes them. ``cases``: rows of the three-layer report.
    ``gates``: a sentence for each gate that failed."""

    sources: Sequence[str] = ()
    made_at: str = ""
    version: str = ""
    judge: str | None = None
    requests: int = 0
    items: int = 0
    unreadable: int = 0
    problems: Sequence[str] = ()
    without_agents: int = 0
    where: str = ""
    left_out: int = 0
    failures: Sequence[Mapping[str, Any]] = ()
    modules: tuple[str, ...] = ()
    cases: Sequence[Mapping[str, Any]] = ()
    gates: Sequence[str] = ()


@dataclass(slots=True)
class Ranked:
    """A session, or a trace that belongs to none, with its traces by start."""

    session: ReportSession | None
    rows: list[ReportTrace] = field(default_factory=list)

    @property
    def rank(self) -> tuple[bool, float, int, str]:
        """The key by which sessions and traces are sorted, worst first (see :func:`rank`)."""
        held: list[ReportTrace | ReportSession] = [*self.rows, *filter(None, [self.session])]
        name = self.session.session_id if self.session else self.rows[0].facts["id"]
        failures = sum(each.failures for each in held)
        return rank(any(each.failed for each in held), min(each.badness for each in held), failures, name)


def ranked(rows: Iterable[ReportTrace], sessions: Mapping[str, ReportSession]) -> list[Ranked]:
    """Returns sessions, and traces without one, worst first. ``rows``: all traces by start."""
    units = {session_id: Ranked(session) for session_id, session in sessions.items()}
    alone: list[Ranked] = []
    for row in rows:
        session_id = row.facts.get("session")
        if session_id is None:
            alone.append(Ranked(None, [row]))
        else:
            units[session_id].rows.append(row)
    return sorted([*units.values(), *alone], key=lambda unit: unit.rank)


def index(
    rows: Sequence[ReportTrace],
    sessions: Mapping[str, ReportSession],
    order: Sequence[Ranked],
    others: Sequence[ShownResult],
    about: ReportOrigin,
) -> dict[str, Any]:
    """Returns JSON-ready data; traces and sessions refer to each other by position. ``order``: worst first, a session
    as ``["s", position]``, a trace without one as ``["t", position]``. ``others``: results about neither."""
    results = [result for unit in (*rows, *sessions.values()) for result in unit.results.values()]
    outcomes = Counter((made["metric"], made["outcome"], made.get("why", "")) for made in (r.short for r in results))
    places = {row.number: place for place, row in enumerate(sorted(rows, key=lambda row: row.rank))}
    positions = {session_id: number for number, session_id in enumerate(sessions)}
    by_session = {unit.session.session_id: unit.rows for unit in order if unit.session}
    return {
        "about": {name: getattr(about, name) for name in ReportOrigin.__slots__ if name != "modules"},
        "metrics": _metrics([*results, *others], about.modules),
        "others": [{**_whole(result), "unit": excerpt(result.unit, 200)} for result in others],
        "sessions": [
            {
                "id": excerpt(session.session_id, 200),
                "traces": [row.number for row in by_session[session.session_id]],
                "results": [_of_session(result) for result in session.results.values()],
            }
            for session in sessions.values()
        ],
        "traces": [
            {
                **row.facts,
                **({"session": positions[row.facts["session"]]} if "session" in row.facts else {}),
                "results": [result.short for result in row.results.values()],
                "rank": places[row.number],
            }
            for row in rows
        ],
        "order": [["s", positions[u.session.session_id]] if u.session else ["t", u.rows[0].number] for u in order],
        "unscored": _unscored(rows, sessions.values()),
        "unasked": unasked(outcomes, len(rows), about.judge),
        "judged": judged(outcomes) > 0,
    }


def _of_session(result: ShownResult) -> dict[str, Any]:
    """Returns a session's result; for one without any judge's part, also in words what it means."""
    held = _whole(result)
    if not is_inline(result.full.get("metadata")) or "label" not in result.short:
        return held
    label = result.short["label"]
    return {**held, "basis": INLINE, "says": verdict(label), "spelled": spelled_out(label, result.full["reason"])}


def _whole(result: ShownResult) -> dict[str, Any]:
    return {**result.short, **result.full, "older": result.older}


def _metrics(results: Iterable[ShownResult], modules: tuple[str, ...]) -> dict[str, Any]:
    """Returns each metric that gave a result, and those known that did not (``asked: false``). ``scored_by``: how many
    scores code or a judge gave; some of a judged metric's need no judge."""
    thresholds: dict[str, Any] = {}
    judges: defaultdict[str, set[str]] = defaultdict(set)
    scored_by: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        key = result.short["metric"]
        thresholds.setdefault(key, result.full.get("threshold"))
        judges[key].update([result.full["model"]] if "model" in result.full else [])
        scored_by[key].update([result.full["by"]] if result.short["outcome"] == "scored" else [])
    known = registry(modules)
    made = {}
    for key in sorted({*known, *thresholds}):
        metric, (level, _, name) = known.get(key), key.partition(".")
        made[key] = {
            "name": name,
            "level": level,
            "kind": None if metric is None else metric.kind,
            "question": "" if metric is None else metric.question,
            "needs": "" if metric is None else metric.needs,
            "threshold": thresholds.get(key),
            "models": sorted(judges[key]),
            "scored_by": scored_by[key],
            "asked": key in thresholds,
        }
    return made


def _unscored(rows: Iterable[ReportTrace], sessions: Iterable[ReportSession]) -> list[dict[str, Any]]:
    """Returns unscored results grouped by why and cure, largest group first."""
    found: defaultdict[tuple[str, str], list[tuple[ShownResult, ReportTrace | None]]] = defaultdict(list)
    for unit in (*rows, *sessions):
        trace = unit if isinstance(unit, ReportTrace) else None
        for result in unit.results.values():
            if result.short["outcome"] == "unscored":
                why, reads_more = result.short["why"], trace is not None and result.full["by"] != "embedding"
                found[why, cure(why, None if trace is None else trace.cure, reads_more)].append((result, trace))
    entries = (
        {
            "why": why,
            "cure": text,
            "count": len(held),
            "metrics": Counter(result.short["metric"] for result, _ in held),
            "reasons": [r for r, _ in Counter(result.short["reason"] for result, _ in held).most_common(_MAX_REASONS)],
            "services": sorted({row.facts.get("service", "") for _, row in held if row} - {""})[:5],
            "traces": sorted({row.number for _, row in held if row}),
        }
        for (why, text), held in found.items()
    )
    return sorted(entries, key=lambda entry: -entry["count"])

"""Finds when metrics, prompts, rulings and judges changed, in the results of a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.listed import BODY, Wanted, conditions

Part = Literal["metric", "rulings", "prompt", "judge"]
_PARTS: tuple[Part, ...] = ("metric", "rulings", "prompt", "judge")
_AGENT = "(SELECT m.agent FROM listed AS m WHERE m.session = l.session AND m.session > 0 AND +m.no > 0 LIMIT 1)"
_MOST = 20_000
_NEWEST = f"""
    SELECT s.bar, s.agent, r.metric, json_extract({BODY}, '$.evaluator.version'),
        json_extract({BODY}, '$.metadata.judge.prompt_version'), json_extract({BODY}, '$.evaluator.model')
    FROM (SELECT (l.at - ?) / ? AS bar, iif(l.no > 0, l.agent, {_AGENT}) AS agent, max(r.seq) AS seq
          FROM listed AS l CROSS JOIN results AS r ON r.about = l.no AND r.verdict IN ({{verdicts}}) AND {{where}}
          GROUP BY bar, agent, r.metric ORDER BY bar LIMIT {_MOST}) AS s
    JOIN results AS r ON r.seq = s.seq ORDER BY s.bar, s.seq"""  # noqa: S608
"""The newest result of each bar, agent and metric. Unscored results can lack the judge's version."""
_SCORED = "'passed', 'failed', 'unclear', 'disputed', 'scored'"


@dataclass(frozen=True, slots=True)
class VersionStep:
    """A change between two bars. ``bar``: of the first results after it. ``rulings``: as hashes, or empty."""

    bar: int
    metric: str
    part: Part
    before: str
    after: str


def version_changes(finder: Finder, wanted: Wanted, since: int, step: int) -> list[VersionStep]:
    """Return changes by bar of ``step`` milliseconds from ``since``; equal changes of several agents once."""
    where = conditions(wanted.of_unit())
    rows = finder.read(_NEWEST.format(where=where, verdicts=_SCORED), since, step, *where.values)
    return [*dict.fromkeys(changes(rows))]


def changes(rows: Iterable[tuple[int, str | None, str, Any, Any, Any]]) -> Iterator[VersionStep]:
    """Yield differences between consecutive rows (bar, agent, metric, version, prompt, judge) of a metric and agent."""
    known: dict[tuple[str, str | None], Mapping[Part, str]] = {}
    for bar, agent, metric, version, prompt, judge in rows:
        own, _, rulings = str(version or "").partition("+")
        before = known.get((metric, agent), {})
        found: dict[Part, str | None] = {"metric": own, "rulings": rulings, "prompt": prompt, "judge": judge}
        now = {part: str(value) for part, value in found.items() if value is not None}
        for part in _PARTS:
            if part in before and part in now and before[part] != now[part]:
                yield VersionStep(bar, metric, part, before[part], now[part])
        known[metric, agent] = {**before, **now}

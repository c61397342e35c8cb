"""Compares agents on the same cases."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.cli._output import print_table
from pandaeval_collector.show.view.compared import change_text
from pandaeval_collector.show.view.texts import NONE, number
from pandaeval_lab.cli._summary import Document
from pandaeval_lab.passk.attempts import CaseOutcomes, trials
from pandaeval_lab.passk.gate import drop

_NAMED = re.compile(r"([\w.-]+)=(.+)", re.DOTALL)
_UNSAFE = re.compile(r"[^\w.-]+")
_ROWS = 60


def named_agents(agents: Sequence[str] | None) -> dict[str, str | None]:
    """Return agents by name, from ``NAME=AGENT`` or the agent itself. ``None``: the agents of the case file.

    Raises ``UserError`` for a repeated name.
    """
    found: dict[str, str | None] = {} if agents else {"": None}
    for each in agents or ():
        named = _NAMED.fullmatch(each)
        name, agent = named.groups() if named else (_UNSAFE.sub("-", each).strip("-."), each)
        if name in found:
            raise UserError(f"--agent {each}: the name {name} is taken; write NAME={agent}")
        found[name] = agent
    return found


def compare_agents(results: Mapping[str, Sequence[Document]], folder: Path) -> None:
    """Print each metric of the agents by case, with tests against the first agent; write comparison.json."""
    rows = [row for key in _keys(results) for row in compared(key, results)]
    path = folder / "comparison.json"
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shown = [row for row in rows if row["case"] is None or _differ(row)]
    first, *others = results
    columns = ["metric", "case", first]
    for name in others:
        columns += [name, "difference (95 %)", "p"]
    caption = "passed trials (mean score); cases without a difference are left out"
    if len(shown) > _ROWS:
        caption += f"; … and {len(shown) - _ROWS} more rows"
    print_table(
        columns, map(_cells, shown[:_ROWS]), f"Agents, compared with {first}", None, f"{caption}; {path} has all"
    )


def compared(key: str, results: Mapping[str, Sequence[Document]]) -> Iterator[dict[str, Any]]:
    """Yield a metric over all common cases, then by case. ``p``: two-sided, by the exact test of the baseline gate."""
    found = {name: _cases(documents, key) for name, documents in results.items()}
    common = sorted(set.intersection(*(set(cases) for cases in found.values())))
    first, *others = found
    for case, names in [(None, common), *((case, [case]) for case in common)] if common else ():
        tried = {agent: [cases[name] for name in names] for agent, cases in found.items()}
        agents = {agent: _figures(cases) for agent, cases in tried.items()}
        tests = {agent: _test(tried[first], tried[agent]) for agent in others}
        yield {"metric": key, "case": case, "agents": agents, "against_first": tests}


def _keys(results: Mapping[str, Sequence[Document]]) -> list[str]:
    every = (each for documents in results.values() for each in documents)
    keys = {f"{each['level']}.{each['metric']}" for each in every if each["level"] != "task"}  # computed from trials
    return sorted(keys, key=lambda key: (key != "trial.trial_correct", not key.startswith("trial."), key))


def _cases(documents: Sequence[Document], key: str) -> dict[str, CaseOutcomes]:
    """Return the cases with a score of the metric."""
    with suppress(UserError):  # this agent has no result of the metric in a case
        return {case.id: case for case in trials(documents, key, "case").cases if case.scores}
    return {}


def _figures(cases: Sequence[CaseOutcomes]) -> dict[str, float]:
    mean = statistics.fmean(score for case in cases for score in case.scores)
    return {"trials": sum(case.n for case in cases), "passed": sum(case.c for case in cases), "mean": mean}


def _test(first: Sequence[CaseOutcomes], other: Sequence[CaseOutcomes]) -> dict[str, float | None]:
    both = [(old, new) for old, new in zip(first, other, strict=True) if old.n and new.n]
    found = drop([(old.n, old.c) for old, _ in both], [(new.n, new.c) for _, new in both])
    if found is None:
        return dict.fromkeys(("difference", "low", "high", "p"))
    apart = found.difference
    p = min(1.0, 2.0 * min(found.p, 1.0 - found.p))
    return {"difference": apart.mean, "low": apart.low, "high": apart.high, "p": p}


def _differ(row: Mapping[str, Any]) -> bool:
    first, *others = row["agents"].values()
    return any(each != first for each in others)


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells = [row["metric"], row["case"] or "all"]
    for name, agent in row["agents"].items():
        cells.append(f"{agent['passed']}/{agent['trials']} ({number(agent['mean'])})")
        if (test := row["against_first"].get(name)) is not None:
            cells += [NONE if test["difference"] is None else change_text(test), number(test["p"], ".2g")]
    return cells

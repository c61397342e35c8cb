"""Figures of the arena: agreement, AUROC, confusions, pairs and comparisons.

A *row* is a ledger line: one run, question and reader, without run text.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pandaeval_collector.analysis.stats.corrected_rate import Labelled
from pandaeval_collector.analysis.stats.quantiles import wilson
from pandaeval_lab.labels.judge_agreement import agreement

Row = Mapping[str, Any]
_DRAWS = 2_000
_Z95 = 1.959963984540054
NEAR = (1, 3)
"""Tolerance in spans for the first wrong step."""
_LEAST_SHARED = 8
"""Minimum number of runs for a comparison."""


def auroc(rows: Sequence[Row]) -> float | None:
    """Return how often a correct run outscores a wrong run; ties count half. ``None`` without both kinds."""
    scored = [row for row in rows if row["score"] is not None]
    if len({row["truth"] for row in scored}) < 2:
        return None
    truths = [float(row["truth"]) for row in scored]
    labelled = Labelled.of(truths, [row["score"] for row in scored])
    return agreement(labelled, labelled.people, 0.5).auroc.value


def interval(rows: Sequence[Row], seed: int = 20) -> tuple[float, float] | None:
    """Return the AUROC's 95 % interval by a bootstrap over sessions."""
    scored = [row for row in rows if row["score"] is not None]
    right, wrong = (np.asarray([row["score"] for row in scored if row["truth"] is truth]) for truth in (True, False))
    if len(right) < 2 or len(wrong) < 2:
        return None
    chance = np.random.default_rng(seed)
    placed = (right[:, None] > wrong[None, :]) + 0.5 * (right[:, None] == wrong[None, :])
    drawn = [
        placed[chance.integers(len(right), size=len(right))][:, chance.integers(len(wrong), size=len(wrong))].mean()
        for _ in range(_DRAWS)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def agrees(row: Row) -> bool:
    """Return whether a verdict exists and is true."""
    return row["correct"] is not None and row["correct"] is row["truth"]


def figures(rows: Sequence[Row]) -> Iterator[str]:
    right, silent = sum(map(agrees, rows)), sum(row["correct"] is None for row in rows)
    low, high = wilson(right / len(rows), len(rows), _Z95)
    line = f"agrees with the truth: {right} of {len(rows)} ({right / len(rows):.2f}, 95 % {low:.2f} to {high:.2f})"
    yield line + (f", {silent} without a verdict" if silent else "")
    yield f"AUROC: {ranked(rows)}"
    yield from _pairs(rows)
    yield from _steps(rows)
    yield "kind: right and passed, right and failed | wrong and failed, wrong and passed | no verdict"
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        kinds[row["kind"] or "all"].append(row)
    for kind, some in sorted(kinds.items()):
        count = Counter((row["truth"], row["correct"]) for row in some)
        cells = [count[cell] for cell in ((True, True), (True, False), (False, False), (False, True))]
        yield f"  {kind}: {cells[0]}, {cells[1]} | {cells[2]}, {cells[3]} | {len(some) - sum(cells)}"


def ranked(rows: Sequence[Row]) -> str:
    """Return the AUROC and its interval as text."""
    value, ends = auroc(rows), interval(rows)
    if value is None:
        return "unknown"
    return f"{value:.2f}" + ("" if ends is None else f" ({ends[0]:.2f} to {ends[1]:.2f})")


def _pairs(rows: Sequence[Row]) -> Iterator[str]:
    sides: dict[str, dict[bool, float]] = defaultdict(dict)
    for row in rows:
        if row["pair"] and row["score"] is not None:
            sides[row["pair"]][row["truth"]] = row["score"]
    both = [side for side in sides.values() if len(side) == 2]
    if both:
        won = sum((side[True] > side[False]) + 0.5 * (side[True] == side[False]) for side in both)
        yield f"pairs in which the chosen one scores higher, ties count half: {won:g} of {len(both)}"


def _steps(rows: Sequence[Row]) -> Iterator[str]:
    named = [row for row in rows if row.get("named_step")]
    if not named:
        return
    near = [row["apart"] if row["apart"] is not None else math.inf for row in named]
    shares = (f"within {most} {sum(apart <= most for apart in near)}" for most in NEAR)
    yield f"first wrong step against people's, of {len(named)} runs with one, in spans: {', '.join(shares)}"


# -- two questions, or two versions of a question ----------------------------------------------------------------------

Group = tuple[str, str, str, str, str]


def groups(rows: Sequence[Row]) -> dict[Group, dict[str, Row]]:
    """Return each session's newest row by set, half, question, prompt and reader."""
    made: dict[Group, dict[str, Row]] = {}
    for row in rows:
        key = row["set"], row["half"], row["question"], row["prompt"], row["reader"]
        made.setdefault(key, {})[f"{row['session']} {row['pair']}"] = row
    return made


def comparison(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a table of questions, and comparisons on shared runs."""
    every = groups(rows)
    yield "| set, half | question | prompt | reader | first asked | runs | agrees | AUROC (95 %) |"
    yield "|---|---|---|---|---|--:|--:|---|"
    for (name, half, question, prompt, reader), held in every.items():
        some = [*held.values()]
        date = min(row["date"] for row in some)[:10]
        share = f"{sum(map(agrees, some))} of {len(some)}"
        yield f"| {name}, {half} | {question} | {prompt} | {reader} | {date} | {len(some)} | {share} | {ranked(some)} |"
    yield ""
    yield "On the same runs:"
    keys = [*every]
    for at, newer in enumerate(keys):
        for older in keys[:at]:
            shared = [run for run in every[newer] if run in every[older]]
            if older[:2] == newer[:2] and len(shared) >= _LEAST_SHARED:
                yield _change(older, newer, [(every[older][run], every[newer][run]) for run in shared])


def _change(older: Group, newer: Group, shared: Sequence[tuple[Row, Row]]) -> str:
    before, now = ([pair[at] for pair in shared] for at in (0, 1))
    mended = sum(agrees(new) and not agrees(old) for old, new in shared)
    broken = sum(agrees(old) and not agrees(new) for old, new in shared)
    names = " -> ".join(f"{key[2]} {key[3]} by {key[4]}" for key in (older, newer))
    counts = f"{sum(map(agrees, before))} -> {sum(map(agrees, now))} of {len(shared)}"
    return (
        f"- {newer[0]}, {newer[1]}: {names}: agrees {counts} ({mended} mended, {broken} broken), "
        f"AUROC {ranked(before)} -> {ranked(now)}"
    )

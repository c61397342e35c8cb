"""The page of repeated trials: pass@k and pass^k as curves with their bands, and the figures as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pandaeval_collector.analysis.stats.pass_k import (
    PassEstimate,
    SuiteEstimate,
    pass_at_k,
    pass_pow_k,
    suite_pass_at_k,
    suite_pass_pow_k,
)
from pandaeval_collector.base.result import cut
from pandaeval_collector.show.report.pictures import BLUE, ORANGE, Curve, PlotPoint, curves
from pandaeval_collector.show.report.still import safe, still_page, table
from pandaeval_collector.trials.passk.attempts import CaseOutcomes
from pandaeval_collector.trials.passk.figures import CaseFigures, Figures, band, mean, median, number, worst_first

FARTHEST = 10
"""Curves go on to this k, or to the largest that was asked for."""
MOST_PICTURES = 60
"""Cases with a picture: the least reliable ones. All are in the table."""
_MEANING = (
    "pass@k: how likely at least one of k trials succeeds; pass^k: how likely all k do. The assessment reads these "
    "figures without their intervals: a case that passed all of five trials is called reliable, and may well fail "
    "every third time."
)


def suite_picture(counts: Sequence[tuple[int, int]], farthest: int = FARTHEST) -> str:
    """SVG of the means over cases with their 95 % intervals, as far as every case has k trials, from each case's
    determined trials and successes."""
    enough = min([farthest, *(n for n, _ in counts)], default=0)
    ks = range(1, enough + 1)
    lines = (
        Curve("pass@k", ORANGE, [_of_suite(k, suite_pass_at_k(counts, k)) for k in ks]),
        Curve("pass^k", BLUE, [_of_suite(k, suite_pass_pow_k(counts, k)) for k in ks]),
    )
    return curves(f"pass@k and pass^k over {len(counts)} cases", lines)


def case_picture(case: CaseOutcomes, farthest: int = FARTHEST) -> str:
    """SVG of a case: the Bayesian medians with their 95 % bands."""
    n, c = case.n, case.c
    ks = range(1, farthest + 1) if n else ()
    lines = (
        Curve("pass@k", ORANGE, [_of_case(k, pass_at_k(n, c, k, "bayesian")) for k in ks]),
        Curve("pass^k", BLUE, [_of_case(k, pass_pow_k(n, c, k, "bayesian")) for k in ks]),
    )
    return curves(f"pass@k and pass^k of {cut(safe(case.id), 80)}: {c} of {n} trials succeeded", lines)


def page(found: Figures, source: str) -> str:
    """The whole page. ``source``: what the figures were read from."""
    farthest = max([FARTHEST, *(each.k for each in found.suite)])
    cases = sorted(found.trials.cases, key=worst_first)
    body = [
        "<h1>Repeated trials</h1>",
        f'<p class="lead">{safe(source)}: a trial succeeds when {safe(found.trials.metric)} passes</p>',
        f"<p>{_MEANING}</p>",
        *(f'<p class="notice">{safe(notice)}</p>' for notice in found.notices),
        "<h2>All together</h2>",
        '<div class="cards two"><figure class="card">',
        suite_picture(found.trials.counts, farthest),
        "<figcaption>Mean over cases, 95 % interval</figcaption></figure>",
        f'<div class="card scroll figures">{_suite_table(found)}</div></div>',
        f"<h2>By {safe(found.trials.per)}, the least reliable first</h2>",
        f'<div class="cards three">{"".join(_card(case, farthest) for case in cases[:MOST_PICTURES])}</div>',
        f'<h2>Figures</h2><div class="card scroll figures">{_case_table(found)}</div>',
    ]
    return still_page("Repeated trials", body)


def _card(case: CaseOutcomes, farthest: int) -> str:
    left = f", {case.undetermined} undetermined" if case.undetermined else ""
    kind = f" ({safe(case.kind)})" if case.kind else ""
    return (
        f'<figure class="card"><h3>{safe(cut(case.id, 120))}{kind}</h3>{case_picture(case, farthest)}'
        f"<figcaption>{case.c} of {case.n} succeeded{left}; median, 95 % interval</figcaption></figure>"
    )


def _suite_table(found: Figures) -> str:
    rows = [
        (str(each.k), f"{each.at.cases} of {each.at.of}", mean(each.at), mean(each.pow), band(each.label))
        for each in found.suite
    ]
    return table(("k", "cases", "pass@k", "pass^k", "assessment"), rows)


def _case_table(found: Figures) -> str:
    each = [f"{name} {mode}" for name in ("pass@k", "pass^k") for mode in ("plug-in", "unbiased", "Bayesian")]
    return table(
        ("case", "trials", "passed", "undetermined", "k", *each, "assessment"),
        (_case_row(each) for each in found.cases),
    )


def _case_row(each: CaseFigures) -> tuple[str, ...]:
    case = each.case
    return (
        cut(case.id, 200),
        *(str(number) for number in (case.n, case.c, case.undetermined, each.k)),
        *_three(each.at),
        *_three(each.pow),
        band(each.label),
    )


def _three(of: Mapping[str, PassEstimate]) -> tuple[str, str, str]:
    return number(of["plug_in"].value), number(of["unbiased"].value), median(of["bayesian"])


def _of_suite(k: int, estimate: SuiteEstimate) -> PlotPoint:
    return PlotPoint(k, estimate.mean or 0.0, estimate.ci_low, estimate.ci_high)


def _of_case(k: int, estimate: PassEstimate) -> PlotPoint:
    return PlotPoint(k, estimate.median or 0.0, estimate.ci_low, estimate.ci_high)

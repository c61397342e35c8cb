"""The page of repeated trials: pass@k and pass^k as curves with their bands, and the figures as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pandaeval_collector.analysis.stats.pass_k import (
    PassEstimate,
    SuiteEstimate,
    pass_at_k,
    pass_pow_k,
    suite_pass_at_k,
    suite_pass_pow_k,
)
from pandaeval_collector.base.result import cut
from pandaeval_collector.show.report.shell import safe, still_page, table
from pandaeval_collector.trials.passk.attempts import CaseOutcomes
from pandaeval_collector.trials.passk.figures import (
    CASE_HEAD,
    SUITE_HEAD,
    Figures,
    between,
    case_row,
    suite_row,
    worst_first,
)

# Pictures as SVG text: curves with bands, and distributions.
#
# They stand by themselves, inline or as an image: no style sheet, no script, no font of their own, and colours that
# can be read on light and on dark paper. Every text in them is escaped.
_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 10, 10, 30
_TEXT, _GRID = "#737b85", "#9aa1a8"
BLUE, ORANGE = "#4f74d6", "#d98a26"


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """A point of a curve. ``x`` from 1 on; ``y`` and its interval in 0..1, of which the ends may be unknown."""

    x: int
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through points, with a band where they have an interval."""

    name: str
    colour: str
    points: Sequence[PlotPoint]


def curves(title: str, lines: Sequence[Curve]) -> str:
    """Returns an SVG picture of lines over k; ``title`` is what screen readers say."""
    last = max([2, *(point.x for line in lines for point in line.points)])
    step = max(1, -(-(last - 1) // 9))
    parts = [_stroke(_across(0), _up(y), _across(1), _up(y), _GRID, 'opacity="0.5"') for y in (0.0, 0.5, 1.0)]
    parts += [_label(_LEFT - 6, _up(y) + 4, str(y), "end") for y in (0, 1)]
    parts.append(_label(_across(1), _HEIGHT - 3, "k", "end"))
    parts += [_label(_place(k, last), _HEIGHT - 16, str(k), "middle") for k in range(1, last + 1, step)]
    for line in lines:
        parts += [_band(line, last), _line(line, last)]
    left = _LEFT
    for line in lines:
        parts.append(_stroke(left, _HEIGHT - 7, left + 14, _HEIGHT - 7, line.colour, 'stroke-width="3"'))
        parts.append(_label(left + 18, _HEIGHT - 3, line.name, "start"))
        left += 30 + 7 * len(line.name)
    said = escape(title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="11">'
        f"<title>{said}</title>{''.join(parts)}</svg>"
    )


def _band(line: Curve, last: int) -> str:
    held = [point for point in line.points if point.low is not None and point.high is not None]
    if len(held) < 2:
        return ""
    over = [f"{_place(each.x, last):.1f},{_up(each.high or 0.0):.1f}" for each in held]
    under = [f"{_place(each.x, last):.1f},{_up(each.low or 0.0):.1f}" for each in reversed(held)]
    return f'<polygon points="{" ".join(over + under)}" fill="{line.colour}" opacity="0.18"/>'


def _line(line: Curve, last: int) -> str:
    places = [f"{_place(each.x, last):.1f},{_up(each.y):.1f}" for each in line.points]
    dots = "".join(
        f'<circle cx="{_place(each.x, last):.1f}" cy="{_up(each.y):.1f}" r="2.5" fill="{line.colour}">'
        f"<title>{escape(f'{line.name}, {each.x}: {between(each.y, each.low, each.high)}')}</title></circle>"
        for each in line.points
    )
    return f'<polyline points="{" ".join(places)}" fill="none" stroke="{line.colour}" stroke-width="2"/>{dots}'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_TEXT}" text-anchor="{anchor}">{escape(text)}</text>'


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def _place(x: int, last: int) -> float:
    return _across((x - 1) / (last - 1))


def _across(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _up(share: float) -> float:
    return _TOP + (1.0 - share) * (_HEIGHT - _TOP - _BOTTOM)


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
    """Returns an SVG of the means over cases with their 95 % intervals, as far as every case has k trials. ``counts``:
    the determined trials and the successes of each case."""
    enough = min([farthest, *(n for n, _ in counts)], default=0)
    ks = range(1, enough + 1)
    lines = (
        Curve("pass@k", ORANGE, [_of_suite(k, suite_pass_at_k(counts, k)) for k in ks]),
        Curve("pass^k", BLUE, [_of_suite(k, suite_pass_pow_k(counts, k)) for k in ks]),
    )
    return curves(f"pass@k and pass^k over {len(counts)} cases", lines)


def case_picture(case: CaseOutcomes, farthest: int = FARTHEST) -> str:
    """Returns an SVG of one case: the Bayesian medians with their 95 % bands."""
    n, c = case.n, case.c
    ks = range(1, farthest + 1) if n else ()
    lines = (
        Curve("pass@k", ORANGE, [_of_case(k, pass_at_k(n, c, k, "bayesian")) for k in ks]),
        Curve("pass^k", BLUE, [_of_case(k, pass_pow_k(n, c, k, "bayesian")) for k in ks]),
    )
    return curves(f"pass@k and pass^k of {cut(safe(case.id), 80)}: {c} of {n} trials succeeded", lines)


def page(found: Figures, source: str) -> str:
    """Returns the whole HTML page. ``source``: what the figures were read from."""
    farthest = max([FARTHEST, *(each.k for each in found.suite)])
    cases = sorted(found.trials.cases, key=worst_first)
    suite = table((f"{found.trials.per}s", *SUITE_HEAD), map(suite_row, found.suite))
    each = table((found.trials.per, *CASE_HEAD), map(case_row, found.cases))
    body = [
        "<h1>Repeated trials</h1>",
        f'<p class="lead">{safe(source)}: a trial succeeds when {safe(found.trials.metric)} passes</p>',
        f"<p>{_MEANING}</p>",
        *(f'<p class="notice">{safe(notice)}</p>' for notice in found.notices),
        "<h2>All together</h2>",
        '<div class="cards two"><figure class="card">',
        suite_picture(found.trials.counts, farthest),
        "<figcaption>Mean over cases, 95 % interval</figcaption></figure>",
        f'<div class="card scroll figures">{suite}</div></div>',
        f"<h2>By {safe(found.trials.per)}, the least reliable first</h2>",
        f'<div class="cards three">{"".join(_card(case, farthest) for case in cases[:MOST_PICTURES])}</div>',
        f'<h2>Figures</h2><div class="card scroll figures">{each}</div>',
    ]
    return still_page("Repeated trials", body)


def _card(case: CaseOutcomes, farthest: int) -> str:
    left = f", {case.undetermined} undetermined" if case.undetermined else ""
    kind = f" ({safe(case.kind)})" if case.kind else ""
    return (
        f'<figure class="card"><h3>{safe(cut(case.id, 120))}{kind}</h3>{case_picture(case, farthest)}'
        f"<figcaption>{case.c} of {case.n} succeeded{left}; median, 95 % interval</figcaption></figure>"
    )


def _of_suite(k: int, estimate: SuiteEstimate) -> PlotPoint:
    return PlotPoint(k, estimate.mean or 0.0, estimate.ci_low, estimate.ci_high)


def _of_case(k: int, estimate: PassEstimate) -> PlotPoint:
    return PlotPoint(k, estimate.median or 0.0, estimate.ci_low, estimate.ci_high)

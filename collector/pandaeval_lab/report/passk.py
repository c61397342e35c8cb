"""The page of repeated trials: pass@k and pass^k as curves with their bands, and the figures as tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pandaeval_collector.analysis.stats.pass_k import (
    pass_at_k,
    pass_pow_k,
    suite_pass_at_k,
    suite_pass_pow_k,
)
from pandaeval_collector.base.result import cut
from pandaeval_collector.show.report.shell import safe, still_page, table
from pandaeval_lab.passk.attempts import CaseOutcomes
from pandaeval_lab.passk.figures import (
    CASE_HEAD,
    SUITE_HEAD,
    Figures,
    between,
    case_row,
    suite_row,
    worst_first,
)

_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 10, 10, 30
_TEXT, _GRID = "#737b85", "#9aa1a8"
BLUE, ORANGE = "#4f74d6", "#d98a26"
Point = tuple[int, float, float | None, float | None]
"""Of a curve: k, a share, and the ends of its interval, as far as they are known."""


def curves(title: str, at: Sequence[Point], power: Sequence[Point]) -> str:
    """Returns an SVG picture of pass@k and pass^k over k with bands where they have an interval; ``title`` is what
    screen readers say. It stands by itself, inline or as an image: no style sheet, no script, no font of its own, and
    colours that can be read on light and on dark paper. Every text in it is escaped."""
    lines = (("pass@k", ORANGE, at), ("pass^k", BLUE, power))
    last = max([2, *(point[0] for point in (*at, *power))])

    def place(k: int) -> float:
        return _across((k - 1) / (last - 1))

    parts = [_stroke(_across(0), _up(y), _across(1), _up(y), _GRID, 'opacity="0.5"') for y in (0.0, 0.5, 1.0)]
    parts += [_label(_LEFT - 6, _up(0) + 4, "0", "end"), _label(_LEFT - 6, _up(1) + 4, "1", "end")]
    parts += [_label(_across(1), _HEIGHT - 3, "k", "end")]
    step = max(1, -(-(last - 1) // 9))
    parts += [_label(place(k), _HEIGHT - 16, str(k), "middle") for k in range(1, last + 1, step)]
    for name, colour, points in lines:
        held = [(k, low, high) for k, _, low, high in points if low is not None and high is not None]
        if len(held) >= 2:
            around = [f"{place(k):.1f},{_up(high):.1f}" for k, _, high in held]
            around += [f"{place(k):.1f},{_up(low):.1f}" for k, low, _ in reversed(held)]
            parts.append(f'<polygon points="{" ".join(around)}" fill="{colour}" opacity="0.18"/>')
        places = " ".join(f"{place(k):.1f},{_up(y):.1f}" for k, y, _, _ in points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for k, y, low, high in points:
            parts.append(
                f'<circle cx="{place(k):.1f}" cy="{_up(y):.1f}" r="2.5" fill="{colour}">'
                f"<title>{escape(f'{name}, {k}: {between(y, low, high)}')}</title></circle>"
            )
    left = _LEFT
    for name, colour, _ in lines:
        parts.append(_stroke(left, _HEIGHT - 7, left + 14, _HEIGHT - 7, colour, 'stroke-width="3"'))
        parts.append(_label(left + 18, _HEIGHT - 3, name, "start"))
        left += 30 + 7 * len(name)
    said = escape(title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="11">'
        f"<title>{said}</title>{''.join(parts)}</svg>"
    )


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{_TEXT}" text-anchor="{anchor}">{escape(text)}</text>'


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str, more: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


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
    ks = range(1, min([farthest, *(n for n, _ in counts)], default=0) + 1)
    found = ([(k, share(counts, k)) for k in ks] for share in (suite_pass_at_k, suite_pass_pow_k))
    at, power = ([(k, each.mean or 0.0, each.ci_low, each.ci_high) for k, each in points] for points in found)
    return curves(f"pass@k and pass^k over {len(counts)} cases", at, power)


def case_picture(case: CaseOutcomes, farthest: int = FARTHEST) -> str:
    """Returns an SVG of one case: the Bayesian medians with their 95 % bands."""
    n, c = case.n, case.c
    ks = range(1, farthest + 1) if n else ()
    found = ([(k, share(n, c, k, "bayesian")) for k in ks] for share in (pass_at_k, pass_pow_k))
    at, power = ([(k, each.median or 0.0, each.ci_low, each.ci_high) for k, each in points] for points in found)
    return curves(f"pass@k and pass^k of {cut(safe(case.id), 80)}: {c} of {n} trials succeeded", at, power)


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

"""Pictures as SVG text: curves with bands, and distributions.

They stand by themselves, inline or as an image: no style sheet, no script, no font of their own, and colours that can
be read on light and on dark paper. Every text in them is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 360, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 10, 10, 30
_TEXT, _GRID = "#737b85", "#9aa1a8"
BLUE, ORANGE = "#4f74d6", "#d98a26"


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """``x`` from 1 on; ``y`` and its interval in 0..1, of which the ends may be unknown."""

    x: int
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points by ``x``, with a band where they have an interval."""

    name: str
    colour: str
    points: Sequence[PlotPoint]


def curves(title: str, lines: Sequence[Curve], x_name: str = "k") -> str:
    """Lines over whole numbers; ``title`` is what people hear who cannot see the picture."""
    last = max([2, *(point.x for line in lines for point in line.points)])
    parts = [_frame(x_name), *_ticks_of_k(last)]
    for line in lines:
        parts += [_band(line, last), _line(line, last)]
    parts += _legend(lines)
    return _svg(title, parts)


def _svg(title: str, parts: Sequence[str]) -> str:
    said = escape(title, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="system-ui, sans-serif" font-size="11">'
        f"<title>{said}</title>{''.join(parts)}</svg>"
    )


def _frame(x_name: str, top: str = "1") -> str:
    lines = "".join(_stroke(_across(0), _up(y), _across(1), _up(y), _GRID, 'opacity="0.5"') for y in (0.0, 0.5, 1.0))
    names = _label(_LEFT - 6, _up(0) + 4, "0", "end") + _label(_LEFT - 6, _up(1) + 4, top, "end")
    return lines + names + _label(_across(1), _HEIGHT - 3, x_name, "end")


def _ticks_of_k(last: int) -> list[str]:
    step = max(1, -(-(last - 1) // 9))
    return [_label(_place(k, last), _HEIGHT - 16, str(k), "middle") for k in range(1, last + 1, step)]


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
        f"<title>{escape(_told(line, each))}</title></circle>"
        for each in line.points
    )
    return f'<polyline points="{" ".join(places)}" fill="none" stroke="{line.colour}" stroke-width="2"/>{dots}'


def _told(line: Curve, point: PlotPoint) -> str:
    between = "" if point.low is None or point.high is None else f" ({point.low:.3f} to {point.high:.3f})"
    return f"{line.name}, {point.x}: {point.y:.3f}{between}"


def _legend(lines: Sequence[Curve]) -> list[str]:
    made, left = [], _LEFT
    for line in lines:
        made.append(_stroke(left, _HEIGHT - 7, left + 14, _HEIGHT - 7, line.colour, 'stroke-width="3"'))
        made.append(_label(left + 18, _HEIGHT - 3, line.name, "start"))
        left += 30 + 7 * len(line.name)
    return made


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

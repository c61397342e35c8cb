"""Pictures of the day: the live page at its moments, the lie in Jaeger, and a chart of the hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Self

from support.chromium import Page, chromium
from support.day_agents import Agents
from support.day_checks import Minute, Watch
from support.day_plan import CRASHES, JUDGE, LIE, SINK, Plan
from support.day_systems import DaySystems

_WIDTH, _LEFT, _ROW, _LINES = 900, 210, 17, 110
_COLOURS = {"event": "#8899aa", "alert": "#c0392b", "banner": "#d68910"}


class Camera:
    """Takes each picture once, as a context manager. Without ``out`` it takes none."""

    def __init__(self, out: Path | None, folder: Path) -> None:
        self._out, self._folder = out, folder
        self._page: Page | None = None
        self._taken: set[str] = set()

    def __enter__(self) -> Self:
        if self._out is not None:
            program = chromium()
            assert program is not None, "pictures need a Chromium"
            self._out.mkdir(parents=True, exist_ok=True)
            self._page = Page(program, self._folder / "browser", 1280, 800)
        return self

    def __exit__(self, *_: object) -> None:
        if self._page is not None:
            self._page.__exit__(None, None, None)

    def look(self, watch: Watch, made: Minute) -> None:
        """Take the pictures that are due."""
        http, plan = watch.home.collector.http, watch.plan
        moments = {
            "1-ordinary": len(watch.minutes) > 2,
            "2-judge-down": JUDGE in made.banners,
            "3-sink-down": SINK in made.banners,
            "4-crashes": made.minute * 60 > plan.at(CRASHES)[1] and made.incidents.get("error", 0) > 0,
        }
        for name, has_come in moments.items():
            if has_come:
                self._take(name, made.problems, lambda page: page.visit(f"{http}/#/?window=1h"))

    def end(self, home: DaySystems, agents: Agents) -> list[str]:
        """Take the pictures of the lie and of the end; return the failures."""
        problems: list[str] = []
        http, lie = home.collector.http, agents.runs(LIE)[0].trace_id
        rows = home.api("/incidents", window="all", limit=100)["incidents"]
        group = next((row["id"] for row in rows if row["label"] == "false_success"), "")
        rows_shown = "document.querySelector('.span-row') !== null"
        self._take("5-lie-incident", problems, lambda page: page.visit(f"{http}/#/failures?group={group}&window=all"))
        self._take("6-lie-trace", problems, lambda page: page.visit(f"{http}/#/trace/{lie}"))
        jaeger = f"{home.jaeger.url}/trace/{lie}"
        self._take("7-lie-in-jaeger", problems, lambda page: page.browse(jaeger, rows_shown))
        self._take("8-end", problems, lambda page: page.visit(f"{http}/#/?window=1h"))
        return problems

    def chart(self, minutes: Sequence[Minute], plan: Plan) -> list[str]:
        """Take a picture of the whole hour; return the failures."""
        problems: list[str] = []
        if self._page is not None:
            self._page.resize(_WIDTH + 60, 440)
        file = self._folder / "chart.html"
        file.write_text(f"<html data-ready=''><body style='margin:8px'>{chart(minutes, plan)}</body></html>")
        self._take("9-hour", problems, lambda page: page.open(file))
        return problems

    def _take(self, name: str, problems: list[str], open_it: Callable[[Page], None]) -> None:
        if self._page is None or self._out is None or name in self._taken:
            return
        self._taken.add(name)
        try:
            open_it(self._page)
            self._page.picture(self._out / f"{name}.webp")
        except Exception as error:
            problems.append(f"the picture {name}: {error!r}")


# -- the chart ---------------------------------------------------------------------------------------------------


def chart(minutes: Sequence[Minute], plan: Plan) -> str:
    """Return an SVG with bars of events, alerts and banners, and lines of counts."""
    rows = [("event", name, _spans(minutes, lambda made, name=name: name in made.events)) for name in plan.began(1e9)]
    firing = sorted({name for made in minutes for name in made.firing})
    rows += [("alert", name, _spans(minutes, lambda made, name=name: name in made.firing)) for name in firing]
    shown = sorted({name for made in minutes for name in made.banners})
    rows += [("banner", name, _spans(minutes, lambda made, name=name: name in made.banners)) for name in shown]
    parts = [_bars(number, row, plan) for number, row in enumerate(rows)]
    top = len(rows) * _ROW + 20
    parts += [_line(minutes, name, colour, top, plan) for name, colour in (("runs", "#2471a3"), ("results", "#1e8449"))]
    ticks = range(0, int(plan.minutes) + 1, max(1, int(plan.minutes / 12)))
    parts += [_text(_x(each, plan), top + _LINES + 14, str(each)) for each in ticks]
    size = f'width="{_WIDTH + 40}" height="{top + _LINES + 20}" font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(parts)}</svg>'


def _spans(minutes: Sequence[Minute], is_on: Callable[[Minute], bool]) -> list[float]:
    return [made.minute for made in minutes if is_on(made)]


def _bars(number: int, row: tuple[str, str, list[float]], plan: Plan) -> str:
    kind, name, at = row
    y, wide = number * _ROW, plan.tick / 60
    boxes = [
        f'<rect x="{_x(each - wide, plan):.1f}" y="{y + 3}" width="{_x(wide, plan) - _LEFT + 0.5:.1f}" '
        f'height="{_ROW - 5}" fill="{_COLOURS[kind]}"/>'
        for each in at
    ]
    return _text(0, y + 13, f"{kind}: {name}") + "".join(boxes)


def _line(minutes: Sequence[Minute], name: str, colour: str, top: int, plan: Plan) -> str:
    most = max(made.counts.get(name, 0) for made in minutes) or 1
    at = [(made.minute, top + _LINES - _LINES * made.counts.get(name, 0) / most) for made in minutes]
    points = " ".join(f"{_x(minute, plan):.1f},{y:.1f}" for minute, y in at)
    label = _text(0, top + (14 if name == "runs" else 30), f"{name}: {most:,} at the end")
    return f'{label}<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'


def _x(minute: float, plan: Plan) -> float:
    return _LEFT + minute / plan.minutes * (_WIDTH - _LEFT)


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'

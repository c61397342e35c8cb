"""A day in the life: two agents work for an hour, with failures on schedule."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from support.day_agents import DESK, SHOP, Agents, crash, lie, loop
from support.day_checks import Minute, Watch, after_stop, at_the_end
from support.day_pictures import Camera
from support.day_plan import CRASHES, FRONT, JUDGE, LIE, LOOP, N_CRASHES, SINK, WORKER, Plan
from support.day_systems import DaySystems, day_systems
from support.processors import until

_PAUSE_S, _REST_S = 14.0, 1200.0


@dataclass(slots=True)
class Day:
    """``alerts``: minutes of each alert, ``problems``: each with its minute."""

    runs: dict[str, int] = field(default_factory=dict)
    results: int = 0
    verdicts: int = 0
    asked: dict[str, int] = field(default_factory=dict)
    rest_s: float = 0.0
    alerts: dict[str, list[float]] = field(default_factory=dict)
    minutes: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def run(folder: Path, seed: int, minutes: float, pictures: Path | None, print_line: Callable[[str], None]) -> Day:
    """Run a day. ``folder``: empty."""
    found, plan = Day(), Plan(minutes)
    with day_systems(folder) as home:
        pause = _PAUSE_S if minutes >= 15 else 5.0
        with Agents(home.beside.grpc, home.collector.grpc, seed, pause) as agents, Camera(pictures, folder) as camera:
            began = time.time()
            watch = Watch(home, agents, plan, began)
            _live(plan, _events(home, agents, plan), watch, camera, print_line)
            agents.stop()
            found.problems += watch.unplanned + _tried(lambda: _rest(home, agents, found))
            found.problems += camera.end(home, agents)
            down, up = plan.at(JUDGE)
            found.problems += filter(None, at_the_end(home, agents, (began + down, began + up)))
            found.problems += camera.chart(watch.minutes, plan)
        _sum_up(found, home, agents, watch.minutes)
        if (code := home.collector.stop()) != 0:
            found.problems.append(f"SIGTERM ended it with {code}")
        found.problems += after_stop(home)
    return found


def _events(home: DaySystems, agents: Agents, plan: Plan) -> list[tuple[float, Callable[[], object]]]:
    """Return the events by seconds since the start."""
    down, up = plan.at(JUDGE)
    gone, back = plan.at(SINK)
    wave, over = plan.at(CRASHES)
    crashes = [
        (wave + number * (over - wave) / N_CRASHES, lambda: agents.now(DESK, crash)) for number in range(N_CRASHES)
    ]
    events: list[tuple[float, Callable[[], object]]] = [
        (plan.at(LIE)[0], lambda: agents.now(DESK, lie)),
        (plan.at(WORKER)[0], home.kill_worker),
        (down, lambda: setattr(home, "judge_is_up", False)),
        (up, lambda: setattr(home, "judge_is_up", True)),
        (plan.at(LOOP)[0], lambda: agents.now(SHOP, loop)),
        (gone, home.sink_down),
        (back, home.sink_up),
        (plan.at(FRONT)[0], home.kill_front),
        *crashes,
    ]
    return sorted(events, key=lambda each: each[0])


def _live(
    plan: Plan,
    events: list[tuple[float, Callable[[], object]]],
    watch: Watch,
    camera: Camera,
    print_line: Callable[[str], None],
) -> None:
    """Run each event at its time, and check everything once a tick."""
    began, look_at = watch.began, plan.tick
    while (now := time.time() - began) < plan.minutes * 60:
        while events and events[0][0] <= now:
            watch.unplanned += _tried(events.pop(0)[1])
        if now >= look_at:
            look_at = (now // plan.tick + 1) * plan.tick
            made = watch.look()
            camera.look(watch, made)
            print_line(_line(made))
        time.sleep(0.2)


def _tried(event: Callable[[], object]) -> list[str]:
    """Run an event; return its error, if any."""
    try:
        event()
    except Exception as error:
        return [f"an event failed: {error!r}"]
    return []


def _line(made: Minute) -> str:
    shown = f"{made.minute:5.2f} {made.events} {made.firing} {made.banners} {made.incidents} {made.counts}"
    return "\n      WRONG ".join((shown, *made.problems))


def _rest(home: DaySystems, agents: Agents, found: Day) -> None:
    began = time.monotonic()
    until(lambda: agents.outbound.waiting() == 0, "all acknowledged", _REST_S)
    home.collector.until(lambda: home.collector.at_rest() and not home.collector.jobs(), "at rest", _REST_S)
    found.rest_s = round(time.monotonic() - began, 1)
    time.sleep(10.0)  # results wait in the queue of the OpenTelemetry Collector


def _sum_up(found: Day, home: DaySystems, agents: Agents, minutes: list[Minute]) -> None:
    found.runs = dict(Counter(each.kind for each in agents.done))
    found.results = len(home.collector.standing())
    found.verdicts = sum(name == "session.correctness" for _, name in home.collector.standing())
    found.asked = {str(status): count for status, count in Counter(each[1] for each in home.judged).items()}
    found.minutes = [asdict(made) for made in minutes]
    for made in minutes:
        found.problems += [f"minute {made.minute}: {problem}" for problem in made.problems]
        for name in made.firing:
            found.alerts.setdefault(name, []).append(made.minute)

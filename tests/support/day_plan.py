"""The schedule of the day: events by minute, and the alerts and incidents that may or must then be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LIE, WORKER, JUDGE, LOOP = "lie", "worker killed", "judge down", "loop"
SINK, FRONT, CRASHES = "sink down", "front killed", "crashes"
_OF_AN_HOUR: Mapping[str, tuple[float, float]] = {
    LIE: (4, 4),
    WORKER: (7, 7),
    JUDGE: (9, 25.5),
    LOOP: (27, 27),
    SINK: (30, 42.5),
    FRONT: (45.3, 45.3),
    CRASHES: (48, 52),
}
N_CRASHES = 60
SETTLED_S, SEEN_S, JUDGED_S = 60.0, 75.0, 240.0
"""Seconds until a result is shown, until an outage is noticed, and until the judge's waiting questions are tried."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A time from ``may`` to ``ends`` with a required part from ``must`` to ``until``, in seconds of the day."""

    may: float
    must: float
    until: float
    ends: float

    def problem(self, name: str, shown: bool, now: float) -> str:
        if shown and not self.may <= now <= self.ends:
            return f"{name} is shown too early or too late"
        if not shown and self.must <= now <= self.until:
            return f"{name} is missing"
        return ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Events of ``minutes``, in seconds since the start."""

    minutes: float

    def at(self, event: str) -> tuple[float, float]:
        begins, ends = _OF_AN_HOUR[event]
        return begins * self.minutes, ends * self.minutes

    @property
    def tick(self) -> float:
        return max(15.0, self.minutes)

    def began(self, now: float) -> list[str]:
        return [event for event in _OF_AN_HOUR if self.at(event)[0] <= now]

    def during(self, now: float) -> list[str]:
        return [event for event in _OF_AN_HOUR if self.at(event)[0] <= now <= self.at(event)[1] + self.tick]

    def has_verdicts(self, now: float) -> bool:
        """Return whether the judge's panels must have data."""
        down, up = self.at(JUDGE)
        return now > 300 and not down <= now <= up + JUDGED_S

    def banners(self) -> dict[str, Shown]:
        """Return the banners of the page."""
        judge, up = self.at(JUDGE)
        sink, back = self.at(SINK)
        return {
            JUDGE: Shown(judge, judge + SEEN_S + 60, up, up + JUDGED_S),
            SINK: Shown(sink, sink + SEEN_S, back, back + SEEN_S),
        }

    def alerts(self) -> dict[str, Shown]:
        """Return the alerts that may fire. An alert is optional if its outage is shorter than its wait (``for``)."""
        judge, up = self.at(JUDGE)
        sink, back = self.at(SINK)
        wave, over = self.at(CRASHES)
        return {
            "PandaEvalJudgeDown": Shown(judge + 300, judge + 600, up, up + 900),
            "PandaEvalExporterDown": Shown(sink + 600, sink + 600 + SEEN_S, back, back + SEEN_S),
            "PandaEvalFailureBurst": Shown(wave, over + SETTLED_S, over + 300, over + 1200),
        }

    def incidents(self, now: float) -> dict[str, tuple[int, int]]:
        """Return the least and greatest number of runs by incident label, for incidents found by rules."""
        wave, over = self.at(CRASHES)
        settled = now - SETTLED_S
        crashes = N_CRASHES if settled > over else 0
        return {
            "false_success": (int(settled > self.at(LIE)[0]), int(now > self.at(LIE)[0])),
            "loop": (int(settled > self.at(LOOP)[0]), int(now > self.at(LOOP)[0])),
            "error": (crashes, N_CRASHES if now > wave else 0),
        }

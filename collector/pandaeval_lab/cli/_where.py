"""``--where``: which traces a command looks at, as ``agent=desk,status=error,time=2026-01-01..2026-01-31``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.config import closest
from pandaeval_otel.model import Trace

HELP = (
    "Only traces like these are scored, judged and shown: agent=NAME, service=NAME, status=error|ok, time=FROM..TO. "
    "Different keys must all hold; of a key that is given twice, one must. time is that of the start, RFC 3339 or a "
    "day, UTC unless it says otherwise; either end may be left out."
)
_KEYS = ("agent", "service", "status", "time")
_NEXT = re.compile(r",(?=\s*[a-z_]+\s*=)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_EVER = (0, 1 << 63)
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Where:
    """A condition on traces: agent, service and status among the given ones (empty: any), start in one of ``times``
    (Unix nanoseconds, the second one excluded). ``text``: the option as it was written."""

    text: str
    agents: frozenset[str] = frozenset()
    services: frozenset[str] = frozenset()
    statuses: frozenset[str] = frozenset()
    times: tuple[tuple[int, int], ...] = ()

    def __call__(self, trace: Trace) -> bool:
        """Returns whether the trace fits, with the outermost agent as its agent."""
        return self.fits(trace.agent, trace.service, trace.status, trace.start_ns)

    def fits(self, agent: str, service: str, status: str, start_ns: int) -> bool:
        """Returns whether a trace with these properties fits."""
        pairs = ((self.agents, agent), (self.services, service), (self.statuses, status))
        if any(wanted and held not in wanted for wanted, held in pairs):
            return False
        return not self.times or any(first <= start_ns < end for first, end in self.times)


def parse_where(written: Iterable[str]) -> Where | None:
    """Returns the condition that the option's values state together; ``None`` if it was not given. Raises ``UserError``
    for text that states none. A comma separates conditions only where ``key=`` follows, so names may hold commas."""
    found: dict[str, list[str]] = {}
    texts = [text.strip() for text in written]
    for condition in (part for text in texts for part in _NEXT.split(text)):
        key, value = _condition(condition)
        found.setdefault(key, []).append(value)
    if not found:
        return None
    return Where(
        ", ".join(texts),
        frozenset(found.get("agent", ())),
        frozenset(found.get("service", ())),
        frozenset(map(_status, found.get("status", ()))),
        tuple(map(_span, found.get("time", ()))),
    )


class Chooser:
    """Filters traces by a condition, and counts what it chose and left out for the notice at the end."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.chosen = self.left_out = 0
        self._agents: set[str] = set()
        self._services: set[str] = set()

    def __call__(self, trace: Trace) -> bool:
        """Returns whether the trace fits the condition, and counts it."""
        for names, name in ((self._agents, trace.agent), (self._services, trace.service)):
            if len(names) < _MOST_NAMES:
                names.add(name)
        fits = self.where(trace)
        self.chosen, self.left_out = self.chosen + fits, self.left_out + (not fits)
        return fits

    @property
    def unknown(self) -> str:
        """The error if no trace was chosen for a name that none has, with the closest name that there is; else
        empty."""
        if self.chosen or not self.left_out:
            return ""
        for key, wanted, there in (
            ("agent", self.where.agents, self._agents),
            ("service", self.where.services, self._services),
        ):
            for name in sorted(wanted - there):
                meant = closest(name, there)
                cure = f"did you mean {meant}?" if meant else f"there are {', '.join(sorted(there)[:10])}"
                return f"--where {key}={name}: no trace of the input has this {key}; {cure}"
        return ""

    def told(self) -> str:
        """Returns a notice: how many traces were left out or, if all were, which agents and services there are."""
        lead = f"--where {self.where.text}: "
        if self.chosen or not self.left_out:
            return f"{lead}{self.left_out} of {self.chosen + self.left_out} agent traces were left out"
        agents, services = (", ".join(sorted(names)[:10]) for names in (self._agents, self._services))
        return f"{lead}no trace of the input is like that (agents: {agents}; services: {services})"


def _condition(text: str) -> tuple[str, str]:
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise _wrong(text, f"write KEY=VALUE, where KEY is one of {', '.join(_KEYS)}")
    if key not in _KEYS:
        meant = closest(key, _KEYS)
        cure = f"did you mean {meant}?" if meant else f"there are {', '.join(_KEYS)}"
        raise _wrong(text, f"there is no key {key!r}; {cure}")
    if not value:
        raise _wrong(text, "a value is missing")
    return key, value


def _status(value: str) -> str:
    if value not in ("error", "ok"):
        raise _wrong(f"status={value}", "write error or ok")
    return value


def _span(value: str) -> tuple[int, int]:
    first, dots, last = (part.strip() for part in value.partition(".."))
    if not dots:
        raise _wrong(
            f"time={value}", "write FROM..TO, as in 2026-01-31T08:00..2026-01-31T12:00; either may be left out"
        )
    span = _moment(first, False) if first else _EVER[0], _moment(last, True) if last else _EVER[1]
    if span[0] >= span[1]:
        raise _wrong(f"time={value}", "FROM is not before TO")
    return span


def _moment(text: str, is_end: bool) -> int:
    """Returns Unix nanoseconds. A day without a time means its beginning or, if ``is_end``, its end."""
    try:
        moment = datetime.fromisoformat(text)
        if is_end and _DAY.fullmatch(text):
            moment += timedelta(days=1)
    except (ValueError, OverflowError):
        raise _wrong(f"time: {text}", "is no time; write RFC 3339, as in 2026-01-31T08:00:00Z, or a day") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000_000) * 1000


def _wrong(text: str, cure: str) -> UserError:
    return UserError(f"--where {text}: {cure}")

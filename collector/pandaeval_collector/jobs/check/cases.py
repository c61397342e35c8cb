"""The runs of the check whose verdicts are known: recordings of real frameworks with a scripted model, which ship with
the package, and one whose answer was replaced by an invented one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

from pandaeval_collector.jobs.canary_file import first_agent_trace
from pandaeval_collector.jobs.check.variants import answering
from pandaeval_collector.judge.redact import redacted
from pandaeval_otel.model import Trace

Band = tuple[float, float]
DONE: Band = (0.75, 1.0)
"""Accomplished, on the whole at least."""
NOT_DONE: Band = (0.0, 0.49)
"""The most important parts are missing."""
_INVENTED = "The warranty on a desk lamp is 36 months from the day of delivery, and it covers the bulb too."


@dataclass(frozen=True, slots=True)
class KnownRun:
    """``band``: where a verdict on how much of the task was accomplished has to lie."""

    name: str
    trace: Trace
    band: Band

    @property
    def good(self) -> bool:
        return self.band == DONE


@cache
def known_runs() -> tuple[KnownRun, ...]:
    """All of them, the good ones first."""
    return tuple(_known())


def _known() -> Iterator[KnownRun]:
    for name in ("returned", "library", "visit"):
        yield KnownRun(name, _recorded(name), DONE)
    for name in ("wrong_tool", "gives_up", "off_topic"):
        yield KnownRun(name, _recorded(name), NOT_DONE)
    yield KnownRun("hallucinates", answering(_recorded("wrong_tool"), _INVENTED), NOT_DONE)


def _recorded(name: str) -> Trace:
    with as_file(files(__package__).joinpath("runs", f"{name}.otlp.jsonl.xz")) as path:
        return redacted(first_agent_trace(path))

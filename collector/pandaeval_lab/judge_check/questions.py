"""The questions of a check, in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_lab.judge_check.known_runs import (
    PLACES,
    POLITE,
    KnownRun,
    answering,
    attacked,
    known_runs,
    known_sessions,
    sections_swapped,
)
from pandaeval_otel.model import Trace

METRIC, CORRECTNESS = "trace.task_completion", "session.correctness"
"""The checked metrics of runs and of sessions. All judged metrics use the same fences, checks and parser."""
_ROUNDS = (1, 2, 3)
"""The rounds in which each unchanged run is judged."""
PLAIN, POSITION, VERBOSITY, INJECTION, SESSION = "plain", "position", "verbosity", "injection", "session"


@dataclass(frozen=True, slots=True)
class CheckItem:
    """A question. ``kind``: the property tested; ``form``: the change of the run."""

    kind: str
    case: str
    form: str
    trace: Trace
    pack: Pack


def planned(attacks: int = 40) -> list[CheckItem]:
    plain = [_item(PLAIN, run, f"round {number}", run.trace) for number in _ROUNDS for run in known_runs()]
    polite = ((run, answering(run.trace, POLITE.format(run.trace.output or ""))) for run in known_runs())
    verbose = [_item(VERBOSITY, run, "padded answer", trace) for run, trace in polite]
    return [*plain, *_in_other_order(), *verbose, *_attacked(attacks)]


def canaries() -> list[CheckItem]:
    return [_item(SESSION, session, "as it was", session.trace) for session in known_sessions()]


@cache
def attacks() -> tuple[tuple[str, str], ...]:
    held = json.loads(files(__package__).joinpath("attacks.json").read_text(encoding="utf-8"))
    return tuple((each["family"], each["text"]) for each in held)


def _in_other_order() -> Iterator[CheckItem]:
    for run in known_runs():
        yield _item(POSITION, run, "tools in the other order", replace(run.trace, tools=run.trace.tools[::-1]))
        item = _item(POSITION, run, "sections in another order", run.trace)
        yield replace(item, pack=sections_swapped(item.pack))


def _attacked(number: int) -> Iterator[CheckItem]:
    bad: Sequence[KnownRun] = [run for run in known_runs() if not run.good]
    for index, (family, text) in enumerate(attacks()[:number]):
        run, place = bad[index % len(bad)], PLACES[index // len(bad) % len(PLACES)]
        yield _item(INJECTION, run, f"{family} in the {place}", attacked(run.trace, place, text))


def _item(kind: str, run: KnownRun, form: str, trace: Trace) -> CheckItem:
    secret = hashlib.sha256(f"{kind} {run.name} {form}".encode()).digest()
    return CheckItem(kind, run.name, form, trace, pack(trace, secret))

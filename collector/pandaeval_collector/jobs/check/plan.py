"""What a check asks: each question with the run that it is about, in the order in which they are put."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pandaeval_collector.jobs.check.cases import KnownRun, known_runs
from pandaeval_collector.jobs.check.variants import (
    PLACES,
    attacked,
    padded,
    parallel_swapped,
    sections_swapped,
    tools_reversed,
)
from pandaeval_collector.judge.pack import Pack, pack
from pandaeval_otel.model import Trace

METRIC = "trace.task_completion"
"""The one whose bands are known; the same fences, checks and reading of replies stand around all judged metrics."""
PLAIN, POSITION, VERBOSITY, INJECTION = "plain", "position", "verbosity", "injection"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """``repeat``: how often each known run is judged as it is, at least 2; ``attacks``: how many are tried."""

    repeat: int = 3
    attacks: int = 40


@dataclass(frozen=True, slots=True)
class CheckItem:
    """One question. ``kind``: what it is asked for; ``form``: what was done to the run, for people."""

    kind: str
    case: str
    form: str
    trace: Trace
    pack: Pack


def planned(options: CheckOptions) -> list[CheckItem]:
    """All questions of a check; the same for every model."""
    return [*_plain(options.repeat), *_in_other_order(), *_padded(), *_attacked(options.attacks)]


@cache
def attacks() -> tuple[tuple[str, str], ...]:
    """Family and text of each attack that ships with the package."""
    held = json.loads(files(__package__).joinpath("attacks.json").read_text(encoding="utf-8"))
    return tuple((each["family"], each["text"]) for each in held)


def _plain(repeat: int) -> Iterator[CheckItem]:
    """As it is, each time behind other fences."""
    for number in range(repeat):
        for run in known_runs():
            yield _item(PLAIN, run, f"round {number + 1}", run.trace)


def _in_other_order() -> Iterator[CheckItem]:
    for run in known_runs():
        yield _item(POSITION, run, "tools in the other order", tools_reversed(run.trace))
        item = _item(POSITION, run, "sections in another order", run.trace)
        yield CheckItem(item.kind, item.case, item.form, item.trace, sections_swapped(item.pack))
        swapped = parallel_swapped(run.trace)
        if swapped is not None:
            yield _item(POSITION, run, "parallel calls in the other order", swapped)


def _padded() -> Iterator[CheckItem]:
    for run in known_runs():
        yield _item(VERBOSITY, run, "padded answer", padded(run.trace))


def _attacked(number: int) -> Iterator[CheckItem]:
    """Runs that did not do what they should, each in turn, with an attack in each place in turn."""
    bad: Sequence[KnownRun] = [run for run in known_runs() if not run.good]
    for index, (family, text) in enumerate(attacks()[:number]):
        run, place = bad[index % len(bad)], PLACES[index // len(bad) % len(PLACES)]
        yield _item(INJECTION, run, f"{family} in the {place}", attacked(run.trace, place, text))


def _item(kind: str, run: KnownRun, form: str, trace: Trace) -> CheckItem:
    secret = hashlib.sha256(f"{kind} {run.name} {form}".encode()).digest()
    return CheckItem(kind, run.name, form, trace, pack(trace, secret))

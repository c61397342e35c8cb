"""What a fault is, and how faults are found: in the ``FAULTS`` of a family's file below ``drill/faults``, or as the
``FAULT`` of a module that an installed package names under ``pandaeval.faults``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Literal

from pandaeval_collector.drill.edits import Edit
from pandaeval_collector.drill.raw import RawTrace
from pandaeval_collector.drill.subject import NotApplicableError, Subject
from pandaeval_collector.pipeline.line.stored_traces import Part
from pandaeval_otel.base.plugins import NotUsableError, Plugin, find, installed
from pandaeval_otel.model import Trace

Family = Literal["value", "claim", "call", "course", "telemetry"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to go wrong. ``text``: what it is, in a sentence. ``edit`` says how one run would go wrong so, or raises
    :class:`NotApplicableError`; it may use only the given source of chance. Faults of ``telemetry`` leave the run right
    and take away what shows it: the right finding is "cannot tell"."""

    family: Family
    text: str
    edit: Callable[[Subject, Random], Edit]


@dataclass(frozen=True, slots=True)
class Planted:
    """A run with a fault in it: the trace, its messages, what was changed, and in which spans."""

    trace: Trace
    parts: list[Part]
    what: str
    span_ids: frozenset[str]


def plant(fault: Fault, subject: Subject, rng: Random) -> Planted:
    """Writes the fault into the spans of a run and reads it back to be sure. Raises :class:`NotApplicableError`."""
    edit = fault.edit(subject, rng)
    raw = RawTrace(subject.parts)
    edit.write(raw, subject.trace)
    after = raw.read()
    if after is None or not raw.touched or not edit.stands(subject.trace, after):
        raise NotApplicableError("these spans cannot be rewritten so that they read as meant")
    return Planted(after, raw.parts(), edit.what, frozenset(raw.touched))


@cache
def faults() -> Mapping[str, Fault]:
    """Finds every fault, by its name."""
    families: tuple[dict[str, Fault], ...] = find("pandaeval_collector.drill.faults", "FAULTS")
    ours = {name: fault for family in families for name, fault in family.items()}

    def check(plugin: Plugin) -> None:
        if not isinstance(plugin.value, Fault):
            raise NotUsableError("it holds no FAULT = Fault(…)")
        if plugin.name in ours:
            raise NotUsableError(f"there is a fault {plugin.name} already")

    others = {plugin.name: plugin.value for plugin in installed("pandaeval.faults", "FAULT", check).found}
    return dict(sorted({**ours, **others}.items()))

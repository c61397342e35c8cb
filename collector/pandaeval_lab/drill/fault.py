"""Defines faults, and finds them: in ``FAULTS`` below ``drill/faults``, or as ``FAULT`` of modules under
``pandaeval.faults``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from random import Random
from typing import TYPE_CHECKING, Literal

from pandaeval_collector.base.untrusted.printable import as_text
from pandaeval_collector.pipeline.line.stored_traces import Part
from pandaeval_lab.drill.raw import RawTrace
from pandaeval_otel.base.plugins import NotUsableError, Plugin, find, installed
from pandaeval_otel.model import Kind, Trace

if TYPE_CHECKING:
    from pandaeval_lab.drill.edits import Edit

Family = Literal["value", "claim", "course"]


class NotApplicableError(Exception):
    """A fault that does not fit a run. The text has the reason."""


@dataclass
class Subject:
    """A run for fault injection.

    ``earlier``, ``earlier_parts``: the session's earlier runs, oldest first. ``others``: answers of other sessions.
    """

    trace: Trace
    parts: Sequence[Part]
    earlier: Sequence[Trace] = ()
    earlier_parts: Sequence[Part] = ()
    others: Sequence[str] = ()

    @property
    def answer(self) -> str:
        """The run's answer. Raises :class:`NotApplicableError` if it has none."""
        if not (self.trace.output or "").strip():
            raise NotApplicableError("the run has no captured answer")
        return self.trace.output or ""

    @cached_property
    def known(self) -> str:
        """The text that the agent had before its answer: instructions, messages, arguments, results, earlier runs."""
        found = [text for trace in self.earlier for text in (*_before(trace), trace.output or "")]
        return "\n".join([*found, *_before(self.trace)])

    @cached_property
    def written(self) -> str:
        """The encoded spans of this session so far, as text."""
        return "\n".join(data.decode(errors="replace") for _, data in (*self.earlier_parts, *self.parts))

    def knows(self, value: str) -> bool:
        return value.casefold() in self.known.casefold() or value.casefold() in self.written.casefold()


def _before(trace: Trace) -> Iterator[str]:
    for span in trace.spans:
        if span.system:
            yield span.system
        if span.kind in (Kind.LLM, Kind.AGENT, Kind.WORKFLOW):
            for message in span.input or ():
                yield message.text
                yield from (as_text(each.result) for each in message.tool_responses)
        yield from (as_text(document) for document in span.documents)
    for call in trace.tool_calls:
        yield f"{as_text(call.arguments)}\n{as_text(call.result)}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault.

    ``text``: description in a sentence. ``edit``: returns the change, or raises :class:`NotApplicableError`; it uses
    only the given random source.

    >>> Fault("claim", "The answer is cut off.", lambda run, rng: AnswerEdit(run.answer[:20], "cut off")).family
    'claim'
    """

    family: Family
    text: str
    edit: Callable[[Subject, Random], Edit]


def family(name: Family, *edits: Callable[[Subject, Random], Edit]) -> dict[str, Fault]:
    """Return a family's faults. Each edit function's docstring is its fault's text."""
    return {edit.__name__: Fault(name, str(edit.__doc__), edit) for edit in edits}


@dataclass(frozen=True, slots=True)
class Planted:
    trace: Trace
    parts: list[Part]
    what: str
    span_ids: frozenset[str]


def plant(fault: Fault, subject: Subject, rng: Random) -> Planted:
    """Write the fault into a run and read it back. Raises :class:`NotApplicableError`."""
    edit = fault.edit(subject, rng)
    raw = RawTrace(subject.parts)
    edit.write(raw, subject.trace)
    after = raw.read()
    if after is None or not raw.touched or not edit.is_applied(subject.trace, after):
        raise NotApplicableError("the fault cannot be written into these spans")
    return Planted(after, raw.parts(), edit.what, frozenset(raw.touched))


@cache
def faults() -> Mapping[str, Fault]:
    """Return all faults by name, also of installed packages."""
    families: tuple[dict[str, Fault], ...] = find("pandaeval_lab.drill.faults", "FAULTS")
    ours = {name: fault for family in families for name, fault in family.items()}

    def check(plugin: Plugin) -> None:
        if not isinstance(plugin.value, Fault):
            raise NotUsableError("it holds no FAULT = Fault(…)")
        if plugin.name in ours:
            raise NotUsableError(f"there is a fault {plugin.name} already")

    others = {plugin.name: plugin.value for plugin in installed("pandaeval.faults", "FAULT", check).found}
    return dict(sorted({**ours, **others}.items()))

"""Which traces are trials of which case."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pandaeval_collector.base.untrusted.stated import stated
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cases.trial import said_first
from pandaeval_otel.base import semconv
from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trace, Trigger

_MOST_UNKNOWN = 100
_MOST_SAID = 80


@dataclass(frozen=True, slots=True)
class TrialTrace:
    """What is kept of a trace to read it again when its trial is graded. ``session_id``: the session in which it was
    placed."""

    trace_id: str
    session_id: str | None
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Attempt:
    """A trial whose traces wait to be read. ``name``: number or name of the attempt."""

    case: Case
    name: str
    traces: Sequence[TrialTrace]


class TrialMatcher:
    """Gathers the traces of trials, without their contents. Traces come by start time, so that the first of a
    conversation comes first.

    A trace belongs to the case that its spans name; else to the case that was frozen from it; else to that of the
    traces before it in its session; else to the only case whose ``inputs.task`` is its input. A trial is what has one
    case and one ``pandaeval.trial``; without the latter, one session, else one trace.
    """

    def __init__(self, suite: Suite) -> None:
        self._cases = {case.id: case for case in suite.cases}
        self._named = {bounded(case.id): case for case in suite.cases}
        self._by_task: dict[str, list[Case]] = {}
        self._frozen: dict[str, Case] = {}
        for case in suite.cases:
            self._frozen.update(dict.fromkeys(case.recorded.trace_ids if case.recorded else (), case))
            if case.task is not None:
                self._by_task.setdefault(case.task, []).append(case)
        self._sessions: dict[str, tuple[Case, str]] = {}
        self._gathered: dict[tuple[str, str], list[TrialTrace]] = {}
        self.unknown: dict[str, int] = {}
        """How many traces name a case that there is not, by its id; of the first 100 such ids."""
        self.ambiguous = 0
        """Traces without a case whose input is the task of several cases."""
        self.unmatched = 0
        """Traces of no case."""
        self.unmatched_said = ""
        """The first words of the user in one such trace, shortened."""
        self.alike: dict[tuple[str, str], int] = {}
        """Trials (case, name) of several traces that each begin anew with the same words, and how many those are."""
        self._began: dict[tuple[str, str], tuple[int, str | None]] = {}

    def add(self, traces: Iterable[Trace]) -> None:
        """Takes in traces; counts those of no case."""
        for trace in traces:
            found = self.case_of(trace)
            if found is None:
                self.unmatched += 1
                self.unmatched_said = self.unmatched_said or (said_first(trace) or "").strip()[:_MOST_SAID]
                continue
            trial, session = (found[0].id, found[1]), trace.session_id
            # A trace that repeats its trial's first words is most likely another attempt under one name.
            said = hash(said_first(trace))
            before, its_session = self._began.setdefault(trial, (said, session))
            if trial in self._gathered and before == said and (session is None or its_session != session):
                self.alike[trial] = self.alike.get(trial, 1) + 1
            self._gathered.setdefault(trial, []).append(TrialTrace(trace.trace_id, session, trace.trigger))
            if session is not None:
                self._sessions[session] = found

    def attempts(self) -> list[Attempt]:
        """Returns all trials, in the order of the cases."""
        order = {id_: at for at, id_ in enumerate(self._cases)}
        keys = sorted(self._gathered, key=lambda key: order[key[0]])
        return [Attempt(self._cases[id_], name, self._gathered[id_, name]) for id_, name in keys]

    @property
    def without_trial(self) -> list[str]:
        """The ids of cases that no trace is a trial of."""
        tried = {id_ for id_, _ in self._gathered}
        return [id_ for id_ in self._cases if id_ not in tried]

    def case_of(self, trace: Trace) -> tuple[Case, str] | None:
        """Returns the case of a trace, and the name of the trial."""
        named = stated(trace, semconv.PANDAEVAL_CASE_ID)[0]
        case = self._named.get(named) if named else self._frozen.get(trace.trace_id)
        if named and case is None and (named in self.unknown or len(self.unknown) < _MOST_UNKNOWN):
            self.unknown[named] = self.unknown.get(named, 0) + 1
        if not named and case is None:
            if trace.session_id in self._sessions:
                return self._sessions[trace.session_id]
            said = (text.strip() for text in (trace.input, said_first(trace)) if text is not None)
            same = next((self._by_task[text] for text in said if text in self._by_task), [])
            self.ambiguous += len(same) > 1
            case = same[0] if len(same) == 1 else None
        name = stated(trace, semconv.PANDAEVAL_TRIAL)[0] or trace.session_id or trace.trace_id
        return None if case is None else (case, name)

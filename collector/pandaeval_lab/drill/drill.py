"""Injects known faults into good runs and scores them like the originals.

A faulty run keeps its ids and replaces the original. A session holds a single fault at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from pandaeval_collector.base.result import Result
from pandaeval_collector.pipeline.line.stored_traces import Part
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_lab.drill.fault import Fault, NotApplicableError, Planted, Subject, plant
from pandaeval_lab.drill.tally import Tally
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.base.component_errors import ERRORS, FAULT

_OTHERS = 200
"""Number of good runs whose answers can be planted as wrong answers into runs of other sessions."""
Where = Callable[[ScoredTrace], bool]
Score = Callable[[TraceFiles, Where | None], Iterable[Result]]
"""Scores the traces that fit a condition; without a condition, all traces."""
OnDone = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class FaultyCopy:
    fault: str
    subject: Subject
    planted: Planted

    @property
    def trace_id(self) -> str:
        return self.subject.trace.trace_id


class Drill:
    """A drill over the traces of ``files``, which stay open."""

    def __init__(
        self,
        files: TraceFiles,
        score: Score,
        faults: Mapping[str, Fault],
        most: int = 200,
        seed: int = 0,
        judge: Score | None = None,
    ) -> None:
        """``most``: copies of each fault. ``judge``: scores the copies and their originals, instead of ``score``."""
        self._files, self._score, self._faults = files, score, faults
        self._most, self._seed, self._judge = most, seed, judge
        self._originals: defaultdict[str, list[Result]] = defaultdict(list)
        """Results of metrics for each run."""
        self._sessions: dict[str, tuple[str, list[str]]] = {}
        """The session of each run, and its runs by start."""

    def run(self, on_done: OnDone = lambda done, total: None) -> Tally:
        """Score originals and faulty copies. ``on_done`` gets the number of copies scored and of all."""
        self._score_originals()
        chosen = sorted(
            id_ for id_, results in self._originals.items() if not any(each.success is False for each in results)
        )
        Random(self._seed).shuffle(chosen)
        tally = Tally(self._faults, len(self._originals), len(chosen))
        if self._judge is None:
            for results in self._originals.values():
                tally.untouched(results)
        judged: set[str] = set()
        for copies in self._rounds(chosen, tally):
            if self._judge is not None:
                self._judge_originals([copy for copy in copies if copy.trace_id not in judged], tally)
                judged |= {copy.trace_id for copy in copies}
            parts = (part for copy in copies for part in (*copy.subject.earlier_parts, *copy.planted.parts))
            found = self._results(copies, parts)
            for copy in copies:
                tally.faults[copy.fault].add(self._originals[copy.trace_id], found[copy.trace_id], copy.planted)
            on_done(
                sum(each.n + each.refused.total() for each in tally.faults.values()), len(chosen) * len(tally.faults)
            )
        return tally

    def _score_originals(self) -> None:
        runs: defaultdict[str, list[str]] = defaultdict(list)
        for result in self._score(self._files, None):
            unit = result.unit
            if unit.level not in ("trace", "turn") or not unit.span_id:
                continue  # a quarantined trace has no span, and is no good run
            if unit.trace_id not in self._originals:
                session = unit.session_id or unit.trace_id
                runs[session].append(unit.trace_id)
                self._sessions[unit.trace_id] = session, runs[session]
            self._originals[unit.trace_id].append(result)

    def _judge_originals(self, copies: Collection[FaultyCopy], tally: Tally) -> None:
        parts = (part for copy in copies for part in (*copy.subject.earlier_parts, *copy.subject.parts))
        for trace_id, results in self._results(copies, parts).items():
            self._originals[trace_id] = results
            tally.untouched(results)

    def _rounds(self, chosen: Sequence[str], tally: Tally) -> Iterator[list[FaultyCopy]]:
        """Yield copies, each of another session."""
        wanted = dict.fromkeys(self._faults, self._most)
        traces = (self._files.trace(each, self._sessions[each][0]) for each in chosen[:_OTHERS])
        others = [(trace.session_id or trace.trace_id, trace.output) for trace in traces if trace.output]
        by_session: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, trace_id in enumerate(chosen):
            by_session[self._sessions[trace_id][0]].append((number, trace_id))

        def of_session(session: str) -> Iterator[FaultyCopy]:
            answers = [answer for of, answer in others if of != session]
            for number, trace_id in by_session[session]:
                subject = self._subject(trace_id, answers)
                names = [*wanted]
                start = number % len(names)  # each run begins with another fault: each fault is in many sessions
                for name in (*names[start:], *names[:start]):
                    copy = self._copy(name, subject, tally) if wanted[name] else None
                    if copy is not None:
                        wanted[name] -= 1
                        yield copy

        sessions = [of_session(session) for session in by_session]
        while copies := [copy for session in sessions if (copy := next(session, None)) is not None]:
            yield copies

    def _subject(self, trace_id: str, others: Sequence[str]) -> Subject:
        session, runs = self._sessions[trace_id]
        before = runs[: runs.index(trace_id)]
        return Subject(
            self._files.trace(trace_id, session),
            self._files.contents(trace_id),
            [self._files.trace(each, session) for each in before],
            [part for each in before for part in self._files.contents(each)],
            others,
        )

    def _copy(self, name: str, subject: Subject, tally: Tally) -> FaultyCopy | None:
        rng = Random(f"{self._seed}/{name}/{subject.trace.trace_id}")
        try:
            return FaultyCopy(name, subject, plant(self._faults[name], subject, rng))
        except NotApplicableError as why:
            tally.faults[name].refused[str(why)] += 1
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a fault of another package costs its own copies
            ERRORS.note(FAULT, name, error)
            tally.faults[name].refused[f"the fault raised {type(error).__name__}"] += 1
        return None

    def _results(self, copies: Iterable[FaultyCopy], parts: Iterable[Part]) -> dict[str, list[Result]]:
        found: dict[str, list[Result]] = {copy.trace_id: [] for copy in copies}
        with TraceFiles(self._files.rules) as files:
            for logs, data in parts:
                files.add(Request(logs, data))
            for result in (self._judge or self._score)(files, lambda run: run.unit.trace_id in found):
                if result.unit.level in ("trace", "turn"):
                    found[result.unit.trace_id].append(result)
        return found


def chosen_faults(names: Collection[str] | None, known: Mapping[str, Fault]) -> Mapping[str, Fault]:
    """Return faults by name or family; ``None``: all. Raises ``ValueError`` for an unknown name."""
    if names is None:
        return known
    families = {fault.family for fault in known.values()}
    if wrong := [name for name in names if name not in known and name not in families]:
        raise ValueError(f"no fault or family of faults is called {', '.join(wrong)}; there are: {', '.join(known)}")
    return {name: fault for name, fault in known.items() if name in names or fault.family in names}

"""Injects known faults into good runs and scores them like the originals.

A faulty run keeps its ids and replaces the original. A session holds a single fault at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
"""So many answers are kept, to be planted as wrong answers into runs of other sessions."""
_REMEMBERED = 1000
"""Runs kept in memory: each is needed per fault and per later run of its session."""
Where = Callable[[ScoredTrace], bool]
Score = Callable[[TraceFiles, Where | None], Iterable[Result]]
"""Scores the traces that fit a condition, of all that were read."""
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
        keep: int = 0,
    ) -> None:
        """``most``: copies of each fault. ``keep``: those of them to keep for :meth:`scored_again`."""
        self._files, self._score, self.faults = files, score, faults
        self._most, self._seed, self._keep = most, seed, keep
        self.kept: defaultdict[str, list[FaultyCopy]] = defaultdict(list)
        """Copies by fault, after :meth:`run`."""
        self._session_of: dict[str, str] = {}
        self._said: defaultdict[str, list[Result]] = defaultdict(list)
        """Results of metrics for each run."""
        self._sessions: defaultdict[str, list[str]] = defaultdict(list)
        self._trace = lru_cache(_REMEMBERED)(lambda id_: files.trace(id_, self._session_of[id_]))

    def run(self, on_done: OnDone = lambda done, total: None) -> Tally:
        """Score originals and faulty copies. ``on_done`` gets the number of copies scored and of all."""
        for result in self._score(self._files, None):
            unit = result.unit
            if unit.level in ("trace", "turn") and unit.span_id:  # one that was set aside has none, and is no good run
                if unit.trace_id not in self._said:
                    session = self._session_of[unit.trace_id] = unit.session_id or unit.trace_id
                    self._sessions[session].append(unit.trace_id)
                self._said[unit.trace_id].append(result)
        chosen = sorted(id_ for id_, said in self._said.items() if not any(each.success is False for each in said))
        Random(self._seed).shuffle(chosen)
        tally = Tally(self.faults, len(self._said), len(chosen))
        for said in self._said.values():
            tally.untouched(said)
        total = len(chosen) * len(self.faults)
        for copies in self._rounds(chosen, tally):
            found = self._scored(copies, self._score)
            for copy in copies:
                tally.faults[copy.fault].add(self._said[copy.trace_id], found[copy.trace_id], copy.planted)
                kept = self.kept[copy.fault]
                if len(kept) < self._keep:
                    kept.append(copy)
            on_done(sum(each.n + each.refused.total() for each in tally.faults.values()), total)
        return tally

    def _rounds(self, chosen: Sequence[str], tally: Tally) -> Iterator[list[FaultyCopy]]:
        wanted = dict.fromkeys(self.faults, self._most)
        names = [*self.faults]
        # By session the pairs to try. Each session begins with another fault, so that all faults come to as many
        # sessions as there are.
        pairs: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for number, trace_id in enumerate(chosen):
            turned = names[-number % len(names) :] + names[: -number % len(names)]
            pairs[self._session_of[trace_id]] += [(trace_id, name) for name in turned]
        traces = [self._trace(each) for each in chosen[:_OTHERS]]
        others = [(self._session_of[each.trace_id], each.output) for each in traces if each.output]

        def of_session(tried: Iterable[tuple[str, str]]) -> Iterator[FaultyCopy]:
            for trace_id, name in tried:
                copy = self._copy(trace_id, name, others, tally) if wanted[name] else None
                if copy is not None:
                    wanted[name] -= 1
                    yield copy

        sessions = [of_session(tried) for tried in pairs.values()]
        while copies := [copy for session in sessions if (copy := next(session, None)) is not None]:
            yield copies

    def _copy(self, trace_id: str, name: str, others: Sequence[tuple[str, str]], tally: Tally) -> FaultyCopy | None:
        session = self._session_of[trace_id]
        of_session = self._sessions[session]
        before = of_session[: of_session.index(trace_id)]
        subject = Subject(
            self._trace(trace_id),
            self._files.contents(trace_id),
            lambda: (
                [self._trace(each) for each in before],
                [part for each in before for part in self._files.contents(each)],
            ),
            [answer for of, answer in others if of != session],
        )
        rng = Random(f"{self._seed}/{name}/{trace_id}")
        try:
            return FaultyCopy(name, subject, plant(self.faults[name], subject, rng))
        except NotApplicableError as why:
            tally.faults[name].refused[str(why)] += 1
            return None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a fault of another package costs its own copies
            ERRORS.note(FAULT, name, error)
            tally.faults[name].refused[f"the fault raised {type(error).__name__}"] += 1
            return None

    def scored_again(
        self, copies: Sequence[FaultyCopy], score: Score
    ) -> Iterator[tuple[FaultyCopy, list[Result], list[Result]]]:
        """Yield each copy with another scorer's results for its original and itself."""
        originals = {copy.trace_id for copy in copies}
        runs = [each for session in {self._session_of[each] for each in originals} for each in self._sessions[session]]
        before = self._results(originals, (part for each in runs for part in self._files.contents(each)), score)
        waiting = [*copies]
        while waiting:
            of_sessions = {self._session_of[copy.trace_id]: copy for copy in reversed(waiting)}
            together = [copy for copy in waiting if copy in of_sessions.values()]
            waiting = [copy for copy in waiting if copy not in together]
            found = self._scored(together, score)
            yield from ((copy, before[copy.trace_id], found[copy.trace_id]) for copy in together)

    def _scored(self, copies: Collection[FaultyCopy], score: Score) -> dict[str, list[Result]]:
        parts = (part for copy in copies for part in (*copy.subject.earlier_parts, *copy.planted.parts))
        return self._results({copy.trace_id for copy in copies}, parts, score)

    def _results(self, wanted: Collection[str], parts: Iterable[Part], score: Score) -> dict[str, list[Result]]:
        found: dict[str, list[Result]] = {each: [] for each in wanted}
        with TraceFiles(self._files.rules) as files:
            for logs, data in parts:
                files.add(Request(logs, data))
            for result in score(files, lambda run: run.unit.trace_id in found):
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

"""Stepped collectors and their surroundings: one alone, or one with an owner of sessions.

:meth:`World.end` brings everything to rest and returns broken promises.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson

from pandaeval_collector.base.runtime import failpoints
from pandaeval_collector.exporters.delivery import MEMBERS
from pandaeval_collector.judge.call import JudgeConfig
from pandaeval_collector.kafka.members import with_contents
from pandaeval_collector.pipeline.timing import Timing
from pandaeval_collector.receivers.members import MemberMessage
from pandaeval_collector.scoring.evaluator import Evaluator, EvaluatorSettings, JudgeSettings
from pandaeval_collector.store import seen
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import standing
from support.database import open_database
from support.embedder import WordEmbedder
from support.made_traces import Composer, MadeTrace
from support.one_word import one_outcome_per_id
from support.stepped.life import Life
from support.stepped.loop import LIFE, SteppedLoop
from support.stepped.outside import Answer, Calls, JudgeAtOnce, JudgeByHand, Sink, Verdict, Waiting, answer
from support.stored import requests_by_trace, series_problems, stored_spans

POINTS = (
    "after_decode",
    "before_commit",
    "after_commit",
    "after_ack",
    "before_decide",
    "after_decide",
    "after_decision_commit",
    "before_export",
    "after_export",
    "during_resume",
)
TRACES = 6
_METRICS = {
    *("trace.loop_detection", "trace.coherence", "trace.confidence", "trace.grounding", "trace.response"),
    *("turn.helpfulness", "session.agent_consistency", "session.agent_reliability"),
}
_JUDGE = JudgeConfig(("m",))
_TIMING = Timing(upkeep=1e9)
_REST = 400


@cache
def evaluator() -> Evaluator:
    """Return an evaluator with a few metrics per level, two judged."""
    return Evaluator(WordEmbedder(), EvaluatorSettings(_METRICS, judge=JudgeSettings("m", delay=0.0)))


@cache
def made(seed: int) -> tuple[MadeTrace, ...]:
    """Return the senders' traces."""
    composer = Composer(seed, sessions=2)
    return tuple(composer.trace(1 + (seed + number) % 5) for number in range(TRACES))


@dataclass(slots=True)
class Slot:
    """A collector's place. ``life``: ``None`` after a death; ``folder``: its files."""

    name: str
    folder: Path
    life: Life | None = None
    started: Any = None
    deaths: int = 0

    @property
    def is_up(self) -> bool:
        return self.life is not None and self.started.done()


@dataclass(slots=True)
class Figures:
    """Counts of the tried steps."""

    deaths: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    repeated: int = 0
    revisions: int = 0
    verdicts: int = 0
    members: int = 0


class World:
    """A context manager. ``shared``: the second collector owns all sessions."""

    def __init__(self, folder: Path, seed: int, shared: bool) -> None:
        self.traces = made(seed)
        self.loop, self.sink, self.figures = SteppedLoop(), Sink(), Figures()
        self.exports: list[Waiting] = []
        self.members: list[Waiting] = []
        self.questions: list[tuple[Waiting, list[Verdict]]] = []
        self.acknowledged: set[tuple[bytes, bytes]] = set()
        self.problems: list[str] = []
        self._armed: tuple[Slot, str] | None = None
        self._dead: list[Life] = []
        names = ["front", "owner"] if shared else ["alone"]
        self.slots = [Slot(name, folder / name / "0") for name in names]
        self._patches = contextlib.ExitStack()

    def __enter__(self) -> World:
        self._patches.enter_context(patch.multiple(seen, _BITS=10, _MASK=(1 << 10) - 1))  # else 8 MiB per life
        self._patches.enter_context(one_outcome_per_id())
        self._patches.enter_context(patch.object(failpoints, "reach", self._reach))
        self._patches.enter_context(patch.object(failpoints, "reach_soon", self._reach_soon))
        for slot in self.slots:
            self.start(slot)
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for slot in self.slots:
                if slot.life is not None:
                    slot.life.bury()
            self._bury()
            self.loop.settle()
            self.loop.close()
        finally:
            self._patches.close()

    # -- steps ---------------------------------------------------------------------------------------------------

    def send(self, number: int, some: int) -> None:
        """Send the spans selected by the bits of ``some``."""
        trace, slot = self.traces[number], self.slots[number % len(self.slots)]
        if not slot.is_up or slot.life is None:
            return
        spans = [span for place, span in enumerate(trace.spans) if some >> place & 1] or list(trace.spans)
        life, request = slot.life, trace.request(spans).SerializeToString()
        keys = [(span.trace_id, span.span_id) for span in spans]

        def answered(task: Any) -> None:
            if not life.is_dead and not task.cancelled() and task.exception() is None and not task.result().rejected:
                self.acknowledged.update(keys)

        life.begin(life.pipeline.traces(request)).add_done_callback(answered)
        self._done()

    def commit(self, slot: Slot) -> None:
        if slot.life is not None:
            slot.life.commit()
        self._done()

    def wait(self, seconds: float) -> None:
        """Advance the time."""
        self.loop.advance(seconds)
        self._done()

    def answer_export(self, which: int, how: Answer) -> None:
        """Answer a request, also of a dead sender."""
        call = self.exports.pop(which % len(self.exports))
        if call.is_open:
            answer(call, how)
        elif how != "not taken":
            call.take()
        self._done()

    def answer_members(self, which: int, how: Answer) -> None:
        call, owner = self.members.pop(which % len(self.members)), self.slots[-1]
        if how == "not taken" or not owner.is_up or owner.life is None:
            if call.is_open:
                answer(call, "not taken")
        else:
            life = owner.life

            def taken(task: Any) -> None:
                is_well = not (life.is_dead or task.cancelled() or task.exception())
                if call.is_open:
                    self.figures.members += is_well
                    answer(call, how if is_well else "not taken")

            members = [MemberMessage.read(each) for each in call.take()]
            life.begin(life.pipeline.adopt(members, [])).add_done_callback(taken)
        self._done()

    def answer_question(self, which: int, verdict: Verdict) -> None:
        call, verdicts = self.questions.pop(which % len(self.questions))
        if call.is_open:
            verdicts.append(verdict)
            call.answered.set_result(None)
        self._done()

    def arm(self, slot: Slot, point: str) -> None:
        """Kill the collector at its next pass of this point."""
        self._armed = slot, point

    def kill(self, slot: Slot) -> None:
        if slot.life is not None:
            self._kill(slot, "between two steps")
        self._done()

    def start(self, slot: Slot) -> None:
        """Start a new life on the remaining files."""
        if slot.life is not None:
            return
        exporters = [Calls("sink", "logs", self.exports, self.sink.take)]
        if slot.name == "front":
            exporters.append(Calls("sessions", MEMBERS, self.members, lambda rows: self._messages(slot, rows)))
        slot.life = life = Life(
            self.loop,
            slot.folder,
            evaluator(),
            JudgeByHand(self.questions),
            exporters,
            slot.name == "front",
            _TIMING,
        )
        slot.started = life.start()
        self._done()

    # -- checks --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        assert not self.problems, self.problems
        for slot in self.slots:
            if slot.is_up and slot.life is not None:
                slot.started.result()
                assert slot.life.residual() == 0, f"{slot.life.residual()} items of {slot.name} are unaccounted for"

    def end(self) -> None:
        """Bring everything to rest and check the end state."""
        self._come_to_rest()
        self.check()
        self.figures.acknowledged, self.figures.repeated = len(self.acknowledged), self.sink.repeated
        rows: list[dict[str, Any]] = []
        requests: list[bytes] = []
        for slot in self.slots:
            with open_database(slot.folder / "pandaeval.db") as database:
                self.problems += series_problems(database) if self._has_results(database) else []
                rows += [orjson.loads(body) for (body,) in database.execute("SELECT body FROM results ORDER BY seq")]
                requests += requests_by_trace(database)
                self._check_decisions(database)
        self._check_acknowledged()
        self._check_results(rows, requests)
        assert not self.problems, self.problems

    def _come_to_rest(self) -> None:
        self._armed = None
        for number in range(_REST):
            for slot in self.slots:
                self.start(slot)
                self.commit(slot)
            while self.exports:
                self.answer_export(0, "taken")
            while self.members:
                self.answer_members(0, "taken")
            while self.questions:
                self.answer_question(0, "good")
            self.check()
            lives = [slot.life for slot in self.slots if slot.is_up and slot.life is not None]
            if len(lives) == len(self.slots) and all(life.at_rest() for life in lives) and not self.members:
                return
            self.wait(0.05 if number % 8 else 1000.0)
        raise AssertionError("it does not come to rest")

    def _has_results(self, database: Any) -> bool:
        return bool(database.execute("SELECT count(*) FROM results").fetchone()[0])

    def _check_decisions(self, database: Any) -> None:
        """Check that each chunk is decided and each job ended."""
        held = {chunk for (chunks,) in database.execute("SELECT chunks FROM traces") for chunk in orjson.loads(chunks)}
        there = {id_ for (id_,) in database.execute("SELECT id FROM chunks")}
        if there - held:
            self.problems.append(f"{len(there - held)} chunks are in no decided trace")
        states = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
        if states.keys() & {"due", "leased"}:
            self.problems.append(f"jobs without an end: {states}")
        self.figures.verdicts += states.get("done", 0)
        (revisions,) = database.execute("SELECT coalesce(sum(revision), 0) FROM traces").fetchone()
        self.figures.revisions += revisions

    def _check_acknowledged(self) -> None:
        stored: set[tuple[bytes, bytes]] = set()
        for slot in self.slots:
            with open_database(slot.folder / "pandaeval.db") as database:
                stored |= stored_spans(database).keys()
        if lost := self.acknowledged - stored:
            self.problems.append(f"{len(lost)} acknowledged spans are lost")
        if invented := stored - {(span.trace_id, span.span_id) for trace in self.traces for span in trace.spans}:
            self.problems.append(f"{len(invented)} spans were never sent")

    def _check_results(self, rows: Sequence[dict[str, Any]], requests: Sequence[bytes]) -> None:
        """Compare store and sink with a file run."""
        found = _ids_and_scores(sorted(rows, key=lambda each: int(each["revision"])))
        scorer = evaluator()
        with (
            TraceFiles(_TIMING.close) as run,
            ReplayJudge(run.store, scorer, _JUDGE, caller=JudgeAtOnce()) as asked,
        ):
            for request in requests:
                run.add(Request(False, request))
            expected = _ids_and_scores([result.to_dict() for result in replay(run, scorer, asked)])
        if wrong := [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]:
            first = min(wrong)
            self.problems.append(
                f"{len(wrong)} of {len(expected)} results are not those of a file, such as {first}: "
                f"{found.get(first)} instead of {expected.get(first)}"
            )
        sent = {id_ for id_, _ in self.sink.bodies}
        if missing := {each["id"] for each in rows} - sent:
            self.problems.append(f"{len(missing)} results never reached the sink")
        if self.sink.changed:
            self.problems.append(f"{len(self.sink.changed)} results came again with other content")

    # -- deaths --------------------------------------------------------------------------------------------------

    def _reach(self, name: str) -> None:
        life = LIFE.get()
        if self._armed is None or life is None or life.is_dead or self._armed[1] != name:
            return
        slot = self._armed[0]
        if slot.life is life:
            self._armed = None
            self._kill(slot, name)

    def _reach_soon(self, name: str) -> None:
        if self._armed is not None and self._armed[1] == name:
            self.loop.call_later(0.005, self._reach, name)

    def _kill(self, slot: Slot, where: str) -> None:
        life = slot.life
        if life is None:
            return
        life.is_dead = True
        slot.deaths += 1
        self.figures.deaths[where] += 1
        slot.folder = life.folder.with_name(str(slot.deaths))
        shutil.copytree(life.folder, slot.folder)
        slot.life = None
        self._dead.append(life)

    def _done(self) -> None:
        """Run until all wait, then clear dead lives."""
        self.loop.settle()
        self._bury()

    def _bury(self) -> None:
        while self._dead:
            life = self._dead.pop()
            life.bury()
            shutil.rmtree(life.folder)

    def _messages(self, slot: Slot, rows: Sequence[Any]) -> list[bytes]:
        life = slot.life
        if life is None:
            return []
        return [with_contents(row.body, life.store.reads.contents, 4 << 20) for row in rows]


def _ids_and_scores(results: Sequence[dict[str, Any]]) -> dict[tuple[str, str], tuple[str, float | None]]:
    return {key: (each["id"], each["score"]) for key, each in standing(list(results)).items()}

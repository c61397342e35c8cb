"""The state machine of the core protocol, with deaths between steps."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.stepped.outside import ANSWERS, VERDICTS, Answer, Verdict
from support.stepped.world import POINTS, TRACES, World

_WAITS = (0.05, 0.5, 2.0, 11.0, 200.0)
_WHICH = st.integers(0, 3)
_COMMITS = st.integers(0, 2)
"""The writer is usually fast."""
_MEMORY = Path("/dev/shm")


class Protocol(RuleBasedStateMachine):
    """All steps of traces, exports, members, questions and restarts.

    ``figures``: totals of this class.
    """

    figures: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        is_there = _MEMORY.is_dir()
        self._folder = tempfile.TemporaryDirectory(prefix="pandaeval-model-", dir=_MEMORY if is_there else None)
        self._world: World | None = None

    @property
    def world(self) -> World:
        assert self._world is not None
        return self._world

    @initialize(seed=st.integers(0, 7), shared=st.booleans())
    def begin(self, seed: int, shared: bool) -> None:
        self._world = World(Path(self._folder.name), seed, shared)
        self._world.__enter__()

    @rule(number=st.integers(0, TRACES - 1), some=st.integers(0, 31), commits=_COMMITS)
    def part_arrives(self, number: int, some: int, commits: int) -> None:
        self.world.send(number, some)
        self._commit(commits)

    @rule(seconds=st.sampled_from(_WAITS), commits=_COMMITS)
    def time_passes(self, seconds: float, commits: int) -> None:
        self.world.wait(seconds)
        self._commit(commits)

    @rule(which=st.integers(0, 1))
    def commit(self, which: int) -> None:
        self.world.commit(self.world.slots[which % len(self.world.slots)])

    @precondition(lambda self: self.world.exports)
    @rule(which=_WHICH, how=st.sampled_from(ANSWERS))
    def sink_answers(self, which: int, how: Answer) -> None:
        self.world.answer_export(which, how)

    @precondition(lambda self: self.world.members)
    @rule(which=_WHICH, how=st.sampled_from(ANSWERS))
    def owner_gets_members(self, which: int, how: Answer) -> None:
        self.world.answer_members(which, how)

    @precondition(lambda self: self.world.questions)
    @rule(which=_WHICH, verdict=st.sampled_from(VERDICTS))
    def judge_answers(self, which: int, verdict: Verdict) -> None:
        self.world.answer_question(which, verdict)

    @rule(which=st.integers(0, 1), point=st.sampled_from((*POINTS, "at once")))
    def dies(self, which: int, point: str) -> None:
        """Kill between steps, or at a point within the next step."""
        slot = self.world.slots[which % len(self.world.slots)]
        if point == "at once":
            self.world.kill(slot)
        else:
            self.world.arm(slot, point)

    @precondition(lambda self: any(slot.life is None for slot in self.world.slots))
    @rule(commits=_COMMITS)
    def is_started_again(self, commits: int) -> None:
        for slot in self.world.slots:
            self.world.start(slot)
        self._commit(commits)

    def _commit(self, times: int) -> None:
        for slot in self.world.slots * times:
            self.world.commit(slot)

    @invariant()
    def books_balance(self) -> None:
        if self._world is not None:
            self._world.check()
            self.figures["steps"] += 1

    def teardown(self) -> None:
        try:
            if self._world is not None:
                self._close(self._world)
        finally:
            self._folder.cleanup()

    def _close(self, world: World) -> None:
        try:
            world.end()
        finally:
            world.__exit__()
        figures = self.figures
        for name in ("acknowledged", "repeated", "revisions", "verdicts", "members"):
            figures[name] += getattr(world.figures, name)
        figures["examples"] += 1
        figures["deaths"] += sum(world.figures.deaths.values())
        figures.update({f"died {where}": count for where, count in world.figures.deaths.items()})

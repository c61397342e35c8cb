"""Which tool calls of a trace were made before and brought nothing new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pandaeval_collector.analysis.rules._canonical import bare, same_answer
from pandaeval_collector.analysis.rules._failures import failed
from pandaeval_collector.analysis.rules._verbs import Nature, is_stepwise
from pandaeval_otel.model import ToolCall

POLL_WAIT_S = 2.0
"""An idle wait of this many seconds between a call and the same call again makes it polling."""
RETRY_WAIT_S = 1.0
"""An idle wait of this many seconds after a failed call makes the same call a retry with back-off."""
UNKNOWN_WAIT_S = 10.0
"""As ``POLL_WAIT_S``, if the trace does not show what models and tools did meanwhile: a model may have thought."""
GROWTH = 1.5
LEAST_GROWING_S = 0.25
"""After failed calls, waits that grow by this factor from one to the next are a back-off, from this length on."""
CAUTIOUS_ROUNDS = 3
"""Where repetition is weak evidence (no result captured, a call that may change something, a call that failed, one
in other words), it takes this many equal calls in a row until the later ones count."""


@dataclass(slots=True)
class Step:
    """A tool call with what was found out about it. ``signature``: the same for the same agent, tool and equivalent
    arguments; ``None`` if the arguments are not known. ``turn`` and ``visit`` count user turns and changes of the
    acting agent. ``idle_s``: seconds since the previous call in which nothing worked; ``idle_known``: the trace shows
    that nothing worked, not only that no other call was made. ``news``: the answer was new, as far as can be told.
    ``wasted``: the call is a repetition. ``asked_by``: the model call that asked for it, if only that call tells of it.
    ``stale``: an earlier call in other words had brought all of it; then ``signature`` is that of the first such call.
    ``delegates``: another agent worked inside it."""

    call: ToolCall
    nature: Nature
    signature: str | None
    turn: int
    visit: int
    asked_by: str = ""
    idle_s: float = 0.0
    idle_known: bool = True
    news: bool = True
    wasted: bool = False
    stale: bool = False
    delegates: bool = False


@dataclass(slots=True)
class _Chain:
    """A series of equal calls. ``state``: the state's number after the latest one; ``repeats``: all calls that were
    marked as wasted since the state last changed."""

    last: int
    state: int
    length: int = 1
    idle_s: float = 0.0
    growths: int = 0
    pending: list[Step] = field(default_factory=list)
    repeats: list[Step] = field(default_factory=list)


def mark_repeats(steps: Sequence[Step]) -> None:
    """Sets ``news`` and ``wasted`` of every step. Linear in the number of steps."""
    _Marker(steps).run()


class _Marker:
    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._chains: dict[str, _Chain] = {}
        self._state = 0  # a new number whenever the world may have changed
        self._last_news = -1
        self._last_wait = -1

    def run(self) -> None:
        turn = 0
        for index, step in enumerate(self._steps):
            if step.turn != turn:
                turn = step.turn
                self._state += 1
            if step.idle_s >= (POLL_WAIT_S if step.idle_known else UNKNOWN_WAIT_S):
                self._last_wait = index
            if step.nature is Nature.WAITING:
                step.news = False
                self._last_wait = index
                continue
            if step.signature is not None:
                self._follow(index, step, step.signature)
            if step.news and step.nature in (Nature.READING, Nature.CHANGING):
                self._last_news = index
            if step.nature is Nature.CHANGING and not failed(step.call):
                self._state += 1
                if step.signature is not None:
                    self._chains[step.signature].state = self._state

    def _follow(self, index: int, step: Step, signature: str) -> None:
        chain = self._chains.get(signature)
        if chain is None:
            self._chains[signature] = _Chain(index, self._state)
            return
        before = self._steps[chain.last]
        same = True if step.stale else same_answer(before.call, step.call)
        step.news = same is False or (same is None and step.nature is Nature.CHANGING)
        if same is False:
            _forgive(chain)  # the answer changed in the end, so the calls before were waiting for that
            self._chains[signature] = _Chain(index, self._state)
        elif chain.state == self._state and (
            step.call.start_ns < before.call.end_ns or (step.asked_by and step.asked_by == before.asked_by)
        ):
            chain.last = index  # asked for at the same time: the answer could not be known yet
        elif chain.state != self._state or not self._may_repeat(chain, before, step, same):
            self._chains[signature] = _Chain(index, self._state)
        elif self._waited(chain, before, step):
            self._chains[signature] = _Chain(
                index, self._state, idle_s=chain.idle_s, growths=chain.growths, repeats=chain.repeats
            )
        else:
            chain.last = index
            chain.length += 1
            weak = same is None or step.stale or step.nature is Nature.CHANGING or failed(step.call)
            chain.pending.append(step)
            if not weak or chain.length >= CAUTIOUS_ROUNDS:
                for repeat in chain.pending:
                    repeat.wasted = True
                chain.repeats.extend(chain.pending)
                chain.pending.clear()

    def _may_repeat(self, chain: _Chain, before: Step, step: Step, same: bool | None) -> bool:
        if same is None and step.nature is Nature.CHANGING:
            return False
        if step.nature is Nature.THINKING:  # a note may be taken again later; at once, it is no thought
            return self._steps[chain.last + 1] is step
        if step.nature is Nature.HAND_OVER:
            return step.visit == before.visit and self._last_news <= chain.last
        if step.stale and failed(step.call):  # between two attempts that failed alike the agent may have found out why
            return self._last_news <= chain.last
        if step.nature is not Nature.CHANGING or failed(step.call):
            return True
        if is_stepwise(step.call.name) and bare(step.call.result):
            return False
        return self._last_news <= chain.last

    def _waited(self, chain: _Chain, before: Step, step: Step) -> bool:
        """Returns whether time was spent on purpose since the previous equal call."""
        grew = chain.idle_s >= LEAST_GROWING_S and step.idle_s >= GROWTH * chain.idle_s
        chain.growths = chain.growths + 1 if grew else 0
        chain.idle_s = step.idle_s
        if failed(before.call):
            if chain.growths >= (1 if step.idle_known else 2):
                _forgive(chain)
                return True
            if step.idle_known and step.idle_s >= RETRY_WAIT_S:
                return True
        return self._last_wait > chain.last


def _forgive(chain: _Chain) -> None:
    for repeat in chain.repeats:
        repeat.wasted = False
    chain.repeats.clear()

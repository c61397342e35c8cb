"""Attempts at cases: conversations of a user with the agent under test, several at the same time, within their time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pandaeval_lab.cases.model import Case
from pandaeval_lab.cases.trial import RUN_ERROR
from pandaeval_lab.running.agent import Agent, AgentError, RunContext, Talk
from pandaeval_lab.running.tracing import Marks, Tracing, fail, spoil

_MOST_TURNS = 100


class User(Protocol):
    """The user's side of one conversation. ``marks``: what the spans say of the user, from then on; ``spoilt``: why the
    conversation tells nothing about the agent, empty where it does."""

    spoilt: str

    @property
    def marks(self) -> Marks: ...

    async def next(self, answer: str | None) -> str | None:
        """Returns the next message after an answer of the agent (``None``: the first one); ``None``: the end."""
        ...


class ScriptedUser:
    """A user who says what the case says, whatever is answered."""

    def __init__(self, messages: Sequence[str]) -> None:
        self.marks: Marks = {}
        self.spoilt = ""
        self._left = iter(messages)

    async def next(self, answer: str | None) -> str | None:
        return next(self._left, None)


def messages_of(case: Case) -> tuple[str, ...]:
    """Returns what a case has its user say: the ``input`` of each interaction, else the recorded messages, which begin
    with ``inputs.task``, else the task alone."""
    said = tuple(each.input for each in case.interactions if each.input)
    if said and len(said) == len(case.interactions):
        return said
    recorded = case.recorded.messages if case.recorded is not None else ()
    if recorded and case.task in (None, recorded[0].strip()):
        return recorded
    return () if case.task is None else (case.task,)


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Seconds that one turn of the agent, and a whole attempt, may take."""

    turn: float = 120.0
    case: float = 600.0


@dataclass(slots=True)
class Attempted:
    """One attempt. ``trace_ids``: of its turns; ``error``: why the agent did not come to its end; ``spoilt``: why the
    user's side spoilt it; ``has_ended``: it did end, well or not, before the run was broken off."""

    case: Case
    trial: str
    session: str
    trace_ids: list[str] = field(default_factory=list)
    error: str = ""
    spoilt: str = ""
    has_ended: bool = False


class Attempts:
    """Makes attempts with one agent. On one event loop."""

    def __init__(
        self, agent: Agent, user_of: Callable[[Attempted], User], tracing: Tracing, limits: TimeLimits
    ) -> None:
        self._agent, self._user_of, self._tracing, self._limits = agent, user_of, tracing, limits

    async def run(self, attempts: Sequence[Attempted], concurrency: int, on_ended: Callable[[], None]) -> bool:
        """Makes all attempts, so many at a time, and calls ``on_ended`` after each. Returns whether all were made: not
        if the run was interrupted."""
        room = asyncio.Semaphore(concurrency)

        async def make(attempt: Attempted) -> None:
            async with room:
                await self._converse(attempt)
            attempt.has_ended = True
            on_ended()

        try:
            await asyncio.gather(*map(make, attempts))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()  # what has ended is graded all the same
            return False
        return True

    async def _converse(self, attempt: Attempted) -> None:
        user, messages, talk = self._user_of(attempt), list[dict[str, str]](), None
        deadline = time.monotonic() + self._limits.case
        said = await user.next(None)
        while said is not None and len(attempt.trace_ids) < _MOST_TURNS:
            messages.append({"role": "user", "content": said})
            names = attempt.case.id, attempt.trial, attempt.session, len(attempt.trace_ids)
            about = RunContext(*names, tuple(messages), attempt.case.inputs)
            answer = None
            with self._tracing.turn(about, user.marks) as span:
                attempt.trace_ids.append(f"{span.get_span_context().trace_id:032x}")
                try:
                    talk = talk or self._begun()
                    answer = await self._answer(talk, said, about, deadline - time.monotonic())
                except AgentError as error:
                    attempt.error = str(error)
                    fail(span, said, RUN_ERROR, attempt.error)
                ended = time.time_ns()
                messages.append({"role": "assistant", "content": answer or ""})
                said = None if answer is None else await user.next(answer)
                span.set_attributes(dict(user.marks))
                span.end(ended)
        if user.spoilt:
            attempt.spoilt = user.spoilt
            about = RunContext(attempt.case.id, attempt.trial, attempt.session, len(attempt.trace_ids))
            with self._tracing.turn(about, user.marks) as span:
                spoil(span, user.spoilt)

    def _begun(self) -> Talk:
        try:
            return self._agent()
        except Exception as error:  # the constructor is the user's code
            raise AgentError(f"{type(error).__name__}: {error}") from error

    async def _answer(self, talk: Talk, said: str, about: RunContext, left: float) -> str:
        turn = self._limits.turn
        try:
            return await asyncio.wait_for(talk(said, about), max(0.0, min(turn, left)))
        except TimeoutError as error:
            what = f"the turn took longer than {turn:g} s (--turn-timeout)"
            if left < turn:
                what = f"the attempt took longer than {self._limits.case:g} s (--case-timeout)"
            raise AgentError(what) from error

"""The agent under test, of any kind: its context, its answer, and the log of its turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


class AgentError(Exception):
    """The agent gave no answer. The text has the reason."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call that the runner made for the agent. Times in nanoseconds."""

    id: str
    name: str
    arguments: Any
    result: Any
    error: str
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class TurnLog:
    """The runner's record of a turn. ``status``: of the last HTTP response."""

    calls: list[MadeCall] = field(default_factory=list)
    status: int | None = None


@dataclass(frozen=True, slots=True)
class RunContext:
    """An agent's view of an attempt.

    ``messages``: ``{"role": "user" | "assistant", "content": text}``, with this message; ``turn``: from 0.
    """

    case: str
    trial: str
    session: str
    turn: int
    messages: tuple[Mapping[str, str], ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    log: TurnLog = field(default_factory=TurnLog, compare=False)


SendMessage = Callable[[str, RunContext], Awaitable[str]]
"""Sends a message to the agent and returns its answer. Raises :class:`AgentError`."""
Agent = Callable[[], SendMessage]
"""Begins a conversation. Raises the error of the constructor if the agent is a class."""

"""The messages between a collector and the process of a run: each frame is a pickled tuple that begins with its kind.

To the process: a :class:`RunSetup` first, then ``("batch", TracesToScore)``, ``("answer", n, answer or failure)`` and
``("kept", n)``. From it: ``("ready", problem)`` first, then ``("call", n, ModelCall)``, ``("keep", n, key, verdict)``,
``("raised", [RaisedErrors])`` (what components raised) and ``("done", Scored)``. Both ends are the same program on the
same machine, and no other process can write to the pipes.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.jobs import JudgeConfig
from pandaeval_collector.judge.call import CallFailedError, ModelAnswer, OverBudgetError
from pandaeval_collector.scoring.evaluator import EvaluatorSettings
from pandaeval_collector.store.run_rows import RunResult


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The first message to the process of a run. ``store``: the data directory; ``folder``: where the process may
    write; ``sessions``: whether sessions are scored; ``counting``: calls are counted and no model is asked."""

    store: Path
    folder: Path
    embedding: str
    settings: EvaluatorSettings
    judge: JudgeConfig | None
    run_id: str
    sessions: bool = False
    emit: bool = False
    counting: bool = False
    log_level: int = 0


@dataclass(frozen=True, slots=True)
class TracesToScore:
    """``items``: traces by number, each with the number of its session (0: none); all of a session come together."""

    items: Sequence[tuple[int, int]]


@dataclass(slots=True)
class CallCount:
    """Counts the calls that a run would make, and tokens, by model; ``remembered``: answers that cost nothing."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    remembered: int = 0
    models: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Calls, and tokens in and out, by model."""

    def add(self, model: str, prompt: int, completion: int) -> None:
        self.calls += 1
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        calls, into, out = self.models.get(model, (0, 0, 0))
        self.models[model] = calls + 1, into + prompt, out + completion


@dataclass(slots=True)
class Scored:
    """The outcome of a batch. ``items``: each trace with why it failed (``""``: it did not); ``sent``: the results to
    export, if the run exports any."""

    items: list[tuple[int, str]]
    results: list[RunResult]
    sent: list[Result] = field(default_factory=list)
    counted: CallCount | None = None


def body(message: Any) -> bytes:
    """Pickles a message for a frame."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def unpacked(body: bytes) -> Any:
    return pickle.loads(body)  # noqa: S301 - from our parent or our child


def told(failure: CallFailedError | OverBudgetError) -> tuple[Any, ...]:
    """Turns a failed call into a tuple that can be sent through a pipe."""
    if isinstance(failure, CallFailedError):
        return failure.failure, str(failure), failure.retry_after, failure.answered
    return (None, str(failure))


def answer_of(told: Any) -> ModelAnswer:
    """Returns the model's answer; raises the failure if the tuple ``told`` describes one."""
    if isinstance(told, ModelAnswer):
        return told
    if told[0] is None:
        raise OverBudgetError(told[1])
    raise CallFailedError(*told)

"""The process of a run, from the collector's side: hands it batches, and asks judges for it, the one that judges live,
with its limits, or another model under limits like these. What a day may cost is counted together."""

from __future__ import annotations

import asyncio
import math
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pandaeval_collector.base.runtime.calls import Calls, Handlers
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.jobs.setup import JudgeConfig, open_caller
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.judge.known_models import Price
from pandaeval_collector.scoring.evaluator import EvaluatorSettings
from pandaeval_collector.store import Store
from pandaeval_collector.store.runs import RunResult


class RunJudge(Caller, Protocol):
    """The judge of a run."""

    async def prices(self) -> Mapping[str, Price]:
        """Starts its process, and returns the price of each model whose price is known. Raises ``CallFailedError``
        where the process does not start."""
        ...


class LiveJudge(RunJudge, Protocol):
    """The judge of a running collector. ``models``: those that it can be asked for."""

    models: frozenset[str]


class OwnJudge:
    """Implements :class:`RunJudge` with a process of its own, to be closed. Raises
    :class:`pandaeval_collector.jobs.NoJudgeError`."""

    def __init__(self, store: Store, config: JudgeConfig, environ: Mapping[str, str]) -> None:
        self._process, caller = open_caller(store, config, environ)
        self.complete, self.close = caller.complete, self._process.close
        self.record_budget = self._process.record_budget

    async def prices(self) -> Mapping[str, Price]:
        await self._process.start()
        return self._process.prices


def hasty(config: JudgeConfig) -> JudgeConfig:
    """Returns a configuration for a judge that somebody waits for: a provider that fails gets a shorter rest than in a
    collector."""
    return replace(config, setup=replace(config.setup, cooldown=3.0))


@asynccontextmanager
async def judge_of_run(
    store: Store, environ: Mapping[str, str], live: LiveJudge | None, judge: JudgeConfig | None
) -> AsyncIterator[RunJudge | None]:
    """Opens the judge of a run, the ``live`` one if it knows all models; ``None`` without a judge. Raises
    :class:`pandaeval_collector.jobs.NoJudgeError`."""
    if judge is None:
        yield None
    elif live is not None and live.models >= set(judge.setup.models):
        yield live
    else:
        own = OwnJudge(store, judge, environ)
        try:
            yield own
        finally:
            await own.close()


@dataclass(frozen=True, slots=True)
class RunSetup:
    """The setup of the process of a run. ``store``: the data directory; ``folder``: where the process may
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
    """The outcome of a batch. ``items``: each trace with why it failed (``""``: it did not); ``sent``: pickled, the
    results to export, if the run exports any."""

    items: list[tuple[int, str]]
    results: list[RunResult]
    sent: bytes = b""
    counted: CallCount | None = None


class BatchFailedError(Exception):
    """The process of a run ended over a batch, or could not score it."""


class RunProcess:
    """Has one process score the batches of a run, and another after it ended. On one event loop."""

    def __init__(
        self, setup: RunSetup, environ: Mapping[str, str], caller: Caller | None, store: Store, at_once: int
    ) -> None:
        """``caller`` asks judges for the process, at most ``at_once`` calls at a time; ``store`` keeps the answers."""
        self._caller, self._room = caller, asyncio.Semaphore(at_once)
        handlers: Handlers = {
            "complete": self._complete,
            "keep": lambda _, key, body: asyncio.wrap_future(store.verdicts.keep(key, body)),
        }
        self._calls = Calls(
            "the process of a run", "pandaeval_collector.runs.worker", setup, environ, handlers=handlers
        )
        self._folder = setup.folder
        self._spent = 0, 0, 0.0
        # What asks a judge is silent for as long as the provider is.
        self._patience = math.inf if setup.judge else 2 * setup.settings.trace_timeout

    async def score(self, items: Sequence[tuple[int, int]]) -> Scored:
        """Has the process score traces by number, each with the number of its session (0: none). Raises
        :class:`BatchFailedError`, and ``ChildStartError`` where there is no process."""
        try:
            patience = 60.0 + len(items) * self._patience
            scored: Scored = await self._calls.ask("score", items, patience=patience)
        except ChildStartError:
            raise
        except Exception as error:
            raise BatchFailedError(f"{type(error).__name__}: {error}") from error
        return scored

    def spent(self) -> tuple[int, int, float]:
        """Returns the calls, tokens and US dollars since the last time that they were asked for."""
        spent, self._spent = self._spent, (0, 0, 0.0)
        return spent

    def end(self) -> None:
        """Ends the process, also one that is being started, and starts none any more."""
        self._calls.stop()
        self._calls.kill()

    async def close(self) -> None:
        """Ends the process, and deletes what it wrote."""
        await self._calls.close()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _complete(self, _: Any, call: ModelCall) -> ModelAnswer:
        assert self._caller is not None, "a run without a judge asks none"
        async with self._room:
            answer = await self._caller.complete(call)
        calls, tokens, usd = self._spent
        self._spent = calls + 1, tokens + answer.tokens, usd + answer.cost_usd
        return answer

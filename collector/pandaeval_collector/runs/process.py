"""The process of a run, from the collector's side: hands it batches, and asks judges for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.base.runtime.calls import Calls, Handlers
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.runs.wire import RunSetup, Scored
from pandaeval_collector.store import Store


class BatchFailedError(Exception):
    """The process of a run ended over a batch, or could not score it."""


class RunCost:
    """Sums what the calls of a run's process have cost since the last :meth:`take`."""

    def __init__(self) -> None:
        self.calls, self.tokens, self.cost_usd = 0, 0, 0.0

    def take(self) -> tuple[int, int, float]:
        """Returns calls, tokens and US dollars, and resets them to zero."""
        found = self.calls, self.tokens, self.cost_usd
        self.calls, self.tokens, self.cost_usd = 0, 0, 0.0
        return found


class RunProcess:
    """Has one process score the batches of a run, and another after it ended. On one event loop."""

    def __init__(
        self, setup: RunSetup, environ: Mapping[str, str], caller: Caller | None, store: Store, at_once: int
    ) -> None:
        """``caller`` asks judges for the process, at most ``at_once`` calls at a time; ``store`` keeps the answers."""
        self._caller, self._verdicts, self._room = caller, store.verdicts, asyncio.Semaphore(at_once)
        handlers: Handlers = {"complete": self._complete, "keep": self._keep}
        self._calls = Calls(
            "the process of a run", "pandaeval_collector.runs.worker", setup, environ, handlers=handlers
        )
        self.kill, self.close = self._calls.kill, self._calls.close
        self.spent = RunCost()

    async def score(self, items: Sequence[tuple[int, int]]) -> Scored:
        """Has the process score traces by number, each with the number of its session (0: none). Raises
        :class:`BatchFailedError`, and ``ChildStartError`` where there is no process."""
        try:
            scored: Scored = await self._calls.ask("score", items)
        except ChildStartError:
            raise
        except Exception as error:
            raise BatchFailedError(f"{type(error).__name__}: {error}") from error
        return scored

    async def _complete(self, _: Any, call: ModelCall) -> ModelAnswer:
        assert self._caller is not None, "a run without a judge asks none"
        async with self._room:
            answer = await self._caller.complete(call)
        self.spent.calls += 1
        self.spent.tokens += answer.tokens
        self.spent.cost_usd += answer.cost_usd
        return answer

    async def _keep(self, _: Any, key: str, body: bytes) -> None:
        await asyncio.wrap_future(self._verdicts.keep(key, body))

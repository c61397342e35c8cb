"""The process of a run, from the collector's side: hands it batches, and asks judges for it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_collector.base.runtime.calls import Calls, Handlers
from pandaeval_collector.base.runtime.child import ChildStartError
from pandaeval_collector.judge.call import Caller, ModelAnswer, ModelCall
from pandaeval_collector.runs.wire import RunSetup, Scored
from pandaeval_collector.store import Store


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
        self.kill, self._folder = self._calls.kill, setup.folder
        self._spent = 0, 0, 0.0

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

    def spent(self) -> tuple[int, int, float]:
        """Returns the calls, tokens and US dollars since the last time that they were asked for."""
        spent, self._spent = self._spent, (0, 0, 0.0)
        return spent

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

"""The judge of a running collector, from the front's side: a process that packs traces, asks a model and reads what it
says. The front leases it jobs, writes what it has to keep, and commits what the line makes of its answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config, secret
from pandaeval_collector.pipeline.line_processes import DecidesTraces
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.store import Store
from pandaeval_collector.store.asked import JUDGE_WRITES, writing

if TYPE_CHECKING:
    from pandaeval_collector.judge.call import ModelAnswer, ModelCall
    from pandaeval_collector.judge.known import Price

MODULE = "pandaeval_collector.app.judge_main"
FENCE_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
"""The key under which the store keeps the secret that fences in prompts are made with."""


class JudgeProcess:
    """Keeps the judge's process running. On one event loop."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        telemetry: Telemetry,
        store: Store,
        line: DecidesTraces,
        pipeline: Pipeline,
    ) -> None:
        self._line, self._pipeline = line, pipeline
        handlers: dict[str, Callable[..., Any]] = {
            "write": writing(store, JUDGE_WRITES),
            "judged": partial(self._commit, "judged"),
            "shadowed": partial(self._commit, "shadowed"),
            "longest_wait": self._longest_wait,
            "measured": partial(telemetry.take_in, "judge"),
        }
        count = partial(telemetry.add, "pandaeval.judges")
        setup = config, store.clock
        self._calls = Calls("the judge", MODULE, setup, environ, count=count, handlers=handlers, keep=True)

    async def start(self) -> None:
        """Starts the process. Raises ``ChildStartError``."""
        await self._calls.start()

    async def close(self) -> None:
        """Ends the process; the next start runs its jobs again."""
        await self._calls.close()

    async def complete(self, call: ModelCall) -> ModelAnswer:
        """Asks a model, within the limits. Raises what :class:`pandaeval_collector.judge.call.Caller` raises."""
        answer: ModelAnswer = await self._calls.ask("complete", call)
        return answer

    async def prices(self) -> Mapping[str, Price]:
        """Returns the price of each model whose price is known."""
        prices: Mapping[str, Price] = await self._calls.ask("prices")
        return prices

    def share(self, part: float) -> None:
        """Has the judge use only this part, 0..1, of its limits: other collectors use the rest."""
        self._calls.tell("share", part)

    async def _commit(self, name: str, _: Any, *arguments: Any) -> None:
        await self._pipeline.commit(lambda: self._line.decide(name, *arguments))

    async def _longest_wait(self, _: Any) -> float:
        return self._pipeline.kept_for


async def start_judge(
    config: Config,
    environ: Mapping[str, str],
    telemetry: Telemetry,
    parts: AsyncExitStack,
    store: Store,
    line: DecidesTraces,
    pipeline: Pipeline,
) -> JudgeProcess | None:
    """Starts the judge that the configuration names, which ``parts`` stop; ``None`` if it names none."""
    if config.judge.model is None:
        await asyncio.wrap_future(store.runs.stand(None, b""))
        return None
    secret(config.judge.api_key_env, environ)
    if store.reads.get(FENCE_SECRET) is None:
        await asyncio.wrap_future(store.put(FENCE_SECRET, secrets.token_hex(32)))
    judge = JudgeProcess(config, environ, telemetry, store, line, pipeline)
    parts.push_async_callback(judge.close)
    await judge.start()
    telemetry.gauge("pandaeval.queue.size", store.jobs.waiting, queue="judge")
    limit = config.judge.daily_usd
    if limit is not None:
        telemetry.gauge("pandaeval.judge.budget.limit", lambda: limit)
        telemetry.gauge("pandaeval.judge.budget.spent", lambda: store.spending.spent(store.spending.today(time.time())))
    return judge

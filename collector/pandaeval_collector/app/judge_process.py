"""The judge of a running collector, from the front's side: a process that packs traces, asks a model and reads what it
says. The front leases it jobs, writes what it has to keep, and commits what the line makes of its answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from pandaeval_collector.base.runtime.calls import Calls
from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config, secret
from pandaeval_collector.pipeline.line_processes import DecidesTraces
from pandaeval_collector.pipeline.pipeline import Pipeline
from pandaeval_collector.store import Store
from pandaeval_collector.store.store import JUDGE_WRITES, writing

MODULE = "pandaeval_collector.app.judge_main"
FENCE_SECRET = "judge.secret"  # noqa: S105 - the name of a fact
"""The key under which the store keeps the secret that fences in prompts are made with."""


async def start_judge(
    config: Config,
    environ: Mapping[str, str],
    telemetry: Telemetry,
    parts: AsyncExitStack,
    store: Store,
    line: DecidesTraces,
    pipeline: Pipeline,
) -> Calls | None:
    """Starts the judge that the configuration names, which ``parts`` stop; ``None`` if it names none. Raises
    ``ChildStartError``."""
    if config.judge.model is None:
        await asyncio.wrap_future(store.runs.stand(None, b""))
        return None
    secret(config.judge.api_key_env, environ)
    if store.reads.get(FENCE_SECRET) is None:
        await asyncio.wrap_future(store.put(FENCE_SECRET, secrets.token_hex(32)))

    async def commit(name: str, _: Any, *arguments: Any) -> None:
        await pipeline.commit(lambda: line.decide(name, *arguments))

    async def longest_wait(_: Any) -> float:
        return pipeline.kept_for

    handlers: dict[str, Callable[..., Any]] = {
        "write": writing(store, JUDGE_WRITES),
        "judged": partial(commit, "judged"),
        "shadowed": partial(commit, "shadowed"),
        "longest_wait": longest_wait,
        "measured": partial(telemetry.take_in, "judge"),
    }
    count = partial(telemetry.add, "pandaeval.judges")
    judge = Calls("the judge", MODULE, (config, store.clock), environ, count=count, handlers=handlers, keep=True)
    parts.push_async_callback(judge.close)
    await judge.start()
    telemetry.gauge("pandaeval.queue.size", store.jobs.waiting, queue="judge")
    limit = config.judge.daily_usd
    if limit is not None:
        telemetry.gauge("pandaeval.judge.budget.limit", lambda: limit)
        telemetry.gauge("pandaeval.judge.budget.spent", lambda: store.spending.spent(store.spending.today(time.time())))
    return judge

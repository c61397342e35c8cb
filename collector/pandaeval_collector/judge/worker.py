"""The process that calls models: ``python -m pandaeval_collector.judge.worker``.

Only this process imports litellm (4 s, 165 MB). Each attempt requests permission from the collector.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pandaeval_collector.base.runtime.garbage import expect_imports
from pandaeval_collector.base.runtime.peer import Handlers, JsonCodec, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.judge.call import RECORDED, JudgeConfig
from pandaeval_collector.judge.provider import ProviderCaller, Reply
from pandaeval_collector.judge.recorded import RecordedReplies

_NICE = 10
"""Low priority, because the process mostly waits for models."""


async def _open(setup: Mapping[str, Any], _: Peer) -> Handlers:
    connection = JudgeConfig(**setup)
    is_recorded = (connection.api_base or "").startswith(RECORDED)
    caller = RecordedReplies(connection) if is_recorded else ProviderCaller(connection)
    await caller.warm_up()

    async def known(_: Any) -> dict[str, Any]:
        return caller.known()

    async def call(piece: Callable[[Any], Awaitable[Any]], call: Mapping[str, Any]) -> Reply:
        async def allowed(*attempt: Any) -> None:
            await piece(attempt)

        return await caller.answer(call, allowed)

    return {"known": known, "call": call}


if __name__ == "__main__":
    expect_imports()
    serve_together(_open, nice=_NICE, codec=JsonCodec())

"""The collector of a run, as a process of its own: ``python -m pandaeval_lab.running.collector_main``."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.app.collector import Collector
from pandaeval_collector.base.runtime.calls import Handlers, Peer
from pandaeval_collector.base.runtime.serving import serve_together
from pandaeval_collector.config import Config


async def _open(config: Config, _: Peer) -> Handlers:
    running = Collector(config, {})
    listening = await running.start()

    async def addresses(_: Any) -> tuple[str, str]:
        return str(listening.grpc), str(listening.http)

    async def at_rest(_: Any) -> bool:
        return running.at_rest

    return {"listening": addresses, "at_rest": at_rest}


if __name__ == "__main__":
    serve_together(_open)

"""Kills the collector of an evaluation run, then checks traces and costs."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.collector import CollectorProcess
from support.judge import JudgeAnswer, JudgeServer, verdict
from support.made_traces import Composer
from support.senders import HttpSender

CONCURRENCY = 4
ON_THEIR_WAY = 2 * CONCURRENCY
"""Maximum questions in progress: sent, or answered and unsaved."""
_LATENCY_S = 0.02


@dataclass(slots=True)
class Killed:
    """``repeated``: repeated answers; ``most``: peak per kill; ``residual``: unfinished traces."""

    traces: int = 0
    kills: int = 0
    requests: int = 0
    questions: int = 0
    repeated: int = 0
    most: int = 0
    residual: int = 0
    seconds: float = 0.0

    @property
    def allowed(self) -> int:
        return self.kills * ON_THEIR_WAY


def killed(
    folder: Path, traces: int, kills: int, seed: int, on_kill: Callable[[int], None] = lambda done: None
) -> Killed:
    """Run a judged metric, with kills after random numbers of answers."""
    began, chance = time.monotonic(), random.Random(seed)
    found = Killed()
    with JudgeServer(lambda number, body: JudgeAnswer(verdict(body), hang_s=_LATENCY_S)) as server:
        with CollectorProcess(folder, _settings(server)) as collector:
            collector.start()
            _send(collector, traces, seed)
            run_id = _start(collector)
            each, before = max(1, traces // (kills + 1)), 0
            for number in range(kills):
                wanted = len(server.requests) + chance.randint(1, each)
                if not _reached(collector, server, run_id, wanted):
                    break
                collector.kill()
                found.kills += 1
                found.most, before = max(found.most, _repeated(server) - before), _repeated(server)
                collector.start()
                on_kill(number + 1)
            run = _ended(collector, run_id)
            found.most = max(found.most, _repeated(server) - before)
            found.traces = run["traces"]
            found.residual = traces - run["done"] + abs(_results(collector, run_id) - traces)
        found.requests, found.repeated = len(server.requests), _repeated(server)
        found.questions = found.requests - found.repeated
    found.seconds = time.monotonic() - began
    return found


def _settings(server: JudgeServer) -> dict[str, str]:
    return {
        "PANDAEVAL_JUDGE__DETAIL": "all",
        "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
        "PANDAEVAL_JUDGE__API_BASE": server.url,
        "PANDAEVAL_JUDGE__API_KEY_ENV": "JUDGE_KEY",
        "PANDAEVAL_JUDGE__CONCURRENCY": str(CONCURRENCY),
        "PANDAEVAL_JUDGE__SAMPLE": "0",
        "JUDGE_KEY": "sk-test",
    }


def _send(collector: CollectorProcess, traces: int, seed: int) -> None:
    composer, door = Composer(seed), HttpSender(collector.http)
    for _ in range(traces):
        assert door.send(composer.trace().request()).acknowledged
    door.close()
    collector.until(lambda: collector.at_rest() and bool(collector.results()), "at rest", 600.0)


def _start(collector: CollectorProcess) -> str:
    answer = httpx.post(
        f"{collector.http}/api/v1/runs", json={"metrics": ["confidence"], "budget_usd": 1000}, timeout=60.0
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _run(collector: CollectorProcess, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{collector.http}/api/v1/runs/{run_id}", timeout=60.0).json()
    return found


def _reached(collector: CollectorProcess, server: JudgeServer, run_id: str, requests: int) -> bool:
    """Wait for a number of questions; false if the run ends first."""
    while len(server.requests) < requests:
        if _run(collector, run_id)["ended_at"] is not None:
            return False
        time.sleep(0.05)
    return True


def _ended(collector: CollectorProcess, run_id: str) -> dict[str, Any]:
    collector.until(lambda: _run(collector, run_id)["ended_at"] is not None, "through with the run", 600.0)
    return _run(collector, run_id)


def _results(collector: CollectorProcess, run_id: str) -> int:
    with collector.database() as database:
        query = "SELECT count(DISTINCT about) FROM run_results WHERE run = (SELECT no FROM runs WHERE id = ?)"
        (count,) = database.execute(query, (run_id,)).fetchone()
    return int(count)


def _repeated(server: JudgeServer) -> int:
    asked = Counter(json.dumps(body["messages"]) for _, body in [*server.requests])
    return sum(count - 1 for count in asked.values())

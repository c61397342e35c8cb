"""Judge jobs under a provider that fails, with kills of collector and worker: every job ends, and once.

    python tests/proofs/judge.py --traces 10000 --kills 20 [--seed 1]

Prints what was found as one JSON object; leaves with 1 when a promise does not hold.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root), str(root / "collector"), str(root / "tests")]

from support.collector import CollectorProcess
from support.judge import FAULTS, JudgeServer, Say, good
from support.made_traces import Composer
from support.senders import HttpDoor

_LOAD_S = 3600.0
_FAULTS = ("429 with Retry-After", "500", "529", "reset", "cut JSON", "out of range", "wrong echo", "instructed")


class Faulty:
    """Fails a share of the requests, the same ones with the same seed and order."""

    def __init__(self, seed: int, share: float) -> None:
        self._chance, self._share = random.Random(seed), share

    def __call__(self, number: int, body: dict[str, Any]) -> Say:
        if self._chance.random() < self._share:
            return FAULTS[self._chance.choice(_FAULTS)](number, body)
        return good(number, body)


def prove(traces: int, kills: int, seed: int, share: float, folder: Path) -> dict[str, Any]:
    """Runs it and returns what was found."""
    chance, composer = random.Random(seed), Composer(seed)
    with JudgeServer(Faulty(seed, share)) as server:
        settings = {
            "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
            "PANDAEVAL_JUDGE__API_BASE": server.url,
            "PANDAEVAL_JUDGE__DELAY": "0s",
            "PANDAEVAL_JUDGE__API_KEY_ENV": "PROOF_KEY",
            "PROOF_KEY": "sk-proof",
        }
        with CollectorProcess(folder, settings) as collector:
            collector.start()
            began = time.monotonic()
            door = HttpDoor(collector.http)
            for _ in range(traces):
                assert door.send(composer.trace().request()).acknowledged
            door.close()
            killed: Counter[str] = Counter()
            while sum(killed.values()) < kills:
                time.sleep(chance.uniform(3.0, 9.0))
                killed[_kill(collector, chance)] += 1
            collector.until(lambda: _unfinished(collector.data, traces) == 0, "finished", _LOAD_S)
            seconds = time.monotonic() - began
            collector.until(collector.at_rest, "at rest", 120.0)
            exit_code = collector.stop()
        prompts = Counter(json.dumps(body["messages"], sort_keys=True) for _, body in server.requests)
        return {
            **_books(folder / "data"),
            "kills": dict(killed),
            "seconds": round(seconds, 1),
            "exit_code": exit_code,
            "requests": len(server.requests),
            "most_at_once": server.most_at_once,
            "most_often_asked": max(prompts.values(), default=0),
        }


def _kill(collector: CollectorProcess, chance: random.Random) -> str:
    """Kills the collector (which is started again) or the process that it asks judges with."""
    worker = _worker_of(collector)
    if worker is not None and chance.random() < 0.5:
        subprocess.run(["kill", f"-{signal.SIGKILL:d}", str(worker)], check=False)
        return "worker"
    collector.kill()
    collector.start()
    return "collector"


def _worker_of(collector: CollectorProcess) -> int | None:
    assert collector.process is not None
    children = Path(f"/proc/{collector.process.pid}/task")
    for task in children.iterdir() if children.is_dir() else ():
        for child in (task / "children").read_text().split():
            if b"judge.worker" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def _rows(data: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{data / 'pandaeval.db'}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def _unfinished(data: Path, traces: int) -> int:
    decided = _rows(data, "SELECT count(*) FROM traces")[0][0]
    waiting = _rows(data, "SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')")[0][0]
    time.sleep(0.2)
    return int(waiting + (traces - decided))


def _books(data: Path) -> dict[str, Any]:
    states = dict(_rows(data, "SELECT state, count(*) FROM jobs GROUP BY state"))
    bodies = [json.loads(body) for (body,) in _rows(data, "SELECT body FROM results WHERE metric = 'trace.confidence'")]
    newest = {body["trace_id"]: body for body in bodies}
    jobs = sum(states.values())
    asked = {trace_id.hex() for (trace_id,) in _rows(data, "SELECT trace_id FROM jobs WHERE state <> 'cancelled'")}
    scores = Counter(str(body["score"]) for body in bodies if body["outcome"] == "scored")
    return {
        "jobs": jobs,
        "states": states,
        "results": len(bodies),
        "outcomes": dict(Counter(body["why"] or body["outcome"] for body in newest.values())),
        "scores": dict(scores),
        "residual": len(asked - newest.keys()),
    }


def main() -> None:
    """Run and judge the run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", type=float, default=0.15, help="share of requests that fail")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = prove(given.traces, given.kills, given.seed, given.faults, Path(folder))
    print(json.dumps(found, indent=1))
    held = not found["residual"] and set(found["scores"]) <= {"0.8"} and found["exit_code"] == 0
    held = held and set(found["states"]) <= {"done", "dead", "cancelled"}
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()

"""Kills a collector while traces are judged, then compares with a file run."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pandaeval_collector.config import load
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator, judge as judge_of
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.judge import ReplayJudge
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import CollectorProcess, DiedError, snapshot, standing
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.kills import FAIL_POINTS, Results, differences
from support.oracle import Oracle, problems_of
from support.scripted_judge import GOOD, scripted_reply
from support.stored import requests_by_trace, series_problems

_SETTINGS = {
    "PANDAEVAL_JUDGE__DETAIL": "all",
    "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
    "PANDAEVAL_JUDGE__API_KEY_ENV": "PROOF_KEY",
    "PANDAEVAL_JUDGE__DELAY": "0s",
    "PANDAEVAL_JUDGE__TIMEOUT": "60s",
    "PANDAEVAL_METRICS__ENABLED": "[coherence, loop_detection, confidence, agent_consistency]",
    "PANDAEVAL_SESSION__IDLE": "4s",
    # On a busy machine, a batch outlasts the ten minutes after which spans are packed, and the check reads no packs.
    "PANDAEVAL_LATE__WINDOW": "6h",
    "PROOF_KEY": "sk-proof",
}
_REST_S = 1800.0


@dataclass(slots=True)
class Figures:
    """Figures of a batch."""

    cycles: int = 0
    acknowledged: int = 0
    results: int = 0
    verdicts: int = 0
    asked: int = 0
    points: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def run(folder: Path, seed: int, cycles: int, pause: float = 2.0, fresh: bool | None = None) -> Figures:
    """Kill one collector with oracle and judge. ``folder``: empty."""
    chance, figures = random.Random(seed), Figures()

    def verdict(_: int, body: dict[str, Any]) -> JudgeAnswer:
        """Return the final verdict, sometimes after a busy answer."""
        if chance.random() < 0.1:
            return JudgeAnswer(status=chance.choice((429, 500)))
        return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD), hang_s=0.1)

    with JudgeServer(verdict) as judge:
        settings = _SETTINGS | {"PANDAEVAL_JUDGE__API_BASE": judge.url}
        with (
            CollectorProcess(folder / "collector", settings, fresh=fresh) as collector,
            Oracle(collector.grpc, collector.http, seed, pause=pause) as oracle,
        ):
            collector.start()
            for _ in range(cycles):
                figures.points[_cycle(collector, chance)] += 1
                figures.cycles += 1
            oracle.stop()
            collector.until(lambda: collector.at_rest() and _is_judged(collector), "at rest", _REST_S)
            if residual := collector.gauge("accounting_residual"):
                figures.problems.append(f"{residual:.0f} items have no fate")
            figures.acknowledged, figures.asked = len(oracle.told.acknowledged), len(judge.requests)
            with snapshot(collector.data, folder / "scratch") as database:
                figures.problems += problems_of(oracle.told, database)
                figures.problems += series_problems(database)
                requests = list(requests_by_trace(database))
            _last_word(figures, collector, requests, settings)
    return figures


def _cycle(victim: CollectorProcess, chance: random.Random) -> str:
    """Kill a life at a time or fail point."""
    time.sleep(chance.uniform(1.0, 6.0))
    victim.kill()
    point = chance.choice([None, *FAIL_POINTS])
    if point is None:
        victim.start()
        return "at a time"
    victim.launch(PANDAEVAL_FAIL_POINT=f"{point}:{chance.randint(1, FAIL_POINTS[point])}")
    try:
        victim.until(victim.ready, "ready", 600.0)
        deadline = time.monotonic() + 10.0
        while victim.running() and time.monotonic() < deadline:
            time.sleep(0.05)
    except DiedError:
        pass
    victim.kill()
    victim.start()
    return point


def _is_judged(collector: CollectorProcess) -> bool:
    with collector.database() as database:
        (left,) = database.execute("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')").fetchone()
    return not left


def _last_word(
    figures: Figures, collector: CollectorProcess, requests: Iterable[bytes], settings: dict[str, str]
) -> None:
    own = standing(collector.results())
    found: Results = {key: (result["id"], result["score"]) for key, result in own.items()}
    figures.verdicts = sum(result["evaluator"]["kind"] == "llm" for result in own.values())
    figures.results = len(found)
    figures.problems += differences(found, by_a_file(requests, settings))


def by_a_file(requests: Iterable[bytes], settings: dict[str, str]) -> Results:
    """Return a file run's results with the same judge."""
    config = load(None, {key: value for key, value in settings.items() if key.startswith("PANDAEVAL_")})
    scorer, judge = evaluator(config), judge_of(config)
    assert judge is not None
    with TraceFiles(close_rules(config)) as run, ReplayJudge(run.store, scorer, judge, settings) as asked:
        for request in requests:
            run.add(Request(False, request))
        results = [result.to_dict() for result in replay(run, scorer, asked)]
    return {key: (each["id"], each["score"]) for key, each in standing(results).items()}

"""Kills collector and judge process with a failing provider, then compares calls and costs."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from support.collector import CollectorProcess, children_of
from support.judge import FAULTS, JudgeAnswer, JudgeServer, rubric_of
from support.made_traces import Composer
from support.scripted_judge import GOOD, scripted_reply
from support.senders import HttpSender
from support.stored import exported_problems, series_problems

MODEL, PRICE_IN, PRICE_OUT = "openai/gpt-4o-mini", 0.15e-6, 0.6e-6
CONCURRENCY, TIMEOUT_S = 8, 5.0
EXPECTED = {
    "trace.task_completion": 0.9,
    "trace.tool_correctness": 0.8,
    "trace.argument_correctness": 1.0,
    "trace.step_efficiency": 0.75,
    "trace.plan_adherence": 0.75,
    "trace.plan_quality": 0.5,
    "trace.confidence": 0.4,
    "turn.helpfulness": 0.75,
    "turn.coherence": 1.0,
    "turn.relevance": 0.875,
    "turn.faithfulness": 0.5,
    "turn.verbosity": 0.25,
    "turn.agent_behavior_failure": 1.0,
    "turn.tool_call_behavior_failure": 1.0,
    "trace.correctness": 0.9,
    "session.correctness": 0.9,
    "session.goal_completion": 1.0,
    "session.user_friction": 1.0,
}
"""The provider's score: any other score results from a fault."""
_SPOILT = ("cut JSON", "out of range", "wrong echo")
_FAULTS = ("429", "429", "500", "500", "529", "reset", "not http json", "hang", *_SPOILT)
_LONG_S = 1800.0


@dataclass(slots=True)
class Batch:
    """``usd``, ``tokens``: the daily budget, if any."""

    seed: int
    traces: int
    kills: int
    rpm: int
    faults: float = 0.2
    usd: float | None = None
    tokens: int | None = None


@dataclass(slots=True)
class Found:
    """Figures of a batch.

    ``repeated``: answers paid twice. ``per_kill``: peak per kill. ``rpm_share``: peak rate. ``usd_over``: over budget.
    """

    jobs: int = 0
    states: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    residual: int = 0
    requests: int = 0
    answered: int = 0
    repeated: int = 0
    per_kill: int = 0
    rpm_share: float = 0.0
    usd: float = 0.0
    usd_over: float = 0.0
    tokens_over: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    under_way: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def add(self, other: Found) -> None:
        worst = {"per_kill", "rpm_share", "usd_over", "tokens_over"}
        for name in self.to_dict():
            mine, its = getattr(self, name), getattr(other, name)
            setattr(self, name, max(mine, its) if name in worst else mine + its)


class FailingProvider:
    """Fails by seeded chance; records questions, answers and charges."""

    def __init__(self, seed: int, share: float) -> None:
        self._chance, self._share = random.Random(seed), share
        self.asked_at: list[float] = []
        self.answered: dict[str, list[float]] = {}
        self.usd, self.tokens = 0.0, 0

    def __call__(self, number: int, body: dict[str, Any]) -> JudgeAnswer:
        self.asked_at.append(time.monotonic())
        if self._chance.random() < self._share:
            return self._failing(number, body)
        text = scripted_reply(
            body["messages"], rubric_of(body), GOOD
        )  # before the charge: a reply that cannot be made is not counted
        self._charge(body)
        self.answered.setdefault(json.dumps(body["messages"], sort_keys=True), []).append(time.monotonic())
        return JudgeAnswer(text, hang_s=self._chance.uniform(0.1, 0.6))

    def _failing(self, number: int, body: dict[str, Any]) -> JudgeAnswer:
        name = self._chance.choice(_FAULTS)
        match name:
            case _ if name in _SPOILT:  # an invalid answer costs as much as a valid answer
                self._charge(body)
                shape = rubric_of(body)
                text = scripted_reply(body["messages"], shape, GOOD)
                spoilt = {"cut JSON": text[:-12], "wrong echo": text.replace('"echo": "', '"echo": "0')}
                return JudgeAnswer(spoilt.get(name, json.dumps({**json.loads(text), "reason": "x" * 5000})))
            case "hang":
                return JudgeAnswer(hang_s=TIMEOUT_S + 1.0)
            case _:
                return FAULTS[name](number, body)

    def _charge(self, body: dict[str, Any]) -> None:
        taken = sum(len(message["content"]) // 4 for message in body["messages"])
        self.usd += taken * PRICE_IN + 40 * PRICE_OUT
        self.tokens += taken + 40


def run(folder: Path, batch: Batch, print_line: Callable[[str], None] = lambda text: None) -> Found:
    found, chance = Found(), random.Random(batch.seed)
    provider = FailingProvider(batch.seed, batch.faults)
    began = time.monotonic()
    with JudgeServer(provider) as server, _collector(folder, server, batch) as collector:
        collector.start()
        _send(collector, batch)
        killed_at: list[float] = []
        while len(killed_at) < batch.kills and _unfinished(collector, batch.traces):
            _wait(server, chance)
            found.under_way += server.inside
            found.kills[_kill(collector, chance)] += 1
            killed_at.append(time.monotonic())
            print_line(f"{len(killed_at)} kills, {len(provider.asked_at)} requests")
        finished = lambda: collector.at_rest() and _unfinished(collector, batch.traces) == 0  # noqa: E731
        collector.until(finished, "finished", _LONG_S)
        if collector.stop() != 0:
            found.problems.append("the collector did not end well")
        found.seconds = round(time.monotonic() - began, 1)
        _books(collector, found)
        _provider(provider, killed_at, batch, found)
    return found


def _collector(folder: Path, server: JudgeServer, batch: Batch) -> CollectorProcess:
    return CollectorProcess(folder, _settings(server, batch), own_children=True)


def _settings(server: JudgeServer, batch: Batch) -> dict[str, str]:
    judge = {
        "MODEL": MODEL,
        "DETAIL": "all",
        "API_BASE": server.url,
        "API_KEY_ENV": "PROOF_KEY",
        "DELAY": "0s",
        "TIMEOUT": f"{TIMEOUT_S:g}s",
        "CONCURRENCY": str(CONCURRENCY),
        "RPM": str(batch.rpm),
        **({} if batch.usd is None else {"DAILY_USD": str(batch.usd)}),
        **({} if batch.tokens is None else {"DAILY_TOKENS": str(batch.tokens)}),
    }
    settings = {f"PANDAEVAL_JUDGE__{name}": value for name, value in judge.items()}
    return {**settings, "PROOF_KEY": "sk-proof", "PANDAEVAL_SESSION__IDLE": "10s"}


def _send(collector: CollectorProcess, batch: Batch) -> None:
    composer, door = Composer(batch.seed), HttpSender(collector.http)
    for _ in range(batch.traces):
        assert door.send(composer.trace().request()).acknowledged
    door.close()


def _wait(server: JudgeServer, chance: random.Random) -> None:
    """Wait for the next kill, preferably during calls."""
    deadline = time.monotonic() + 60.0
    while chance.random() < 0.9999 and not server.inside and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(chance.uniform(0.0, 4.0))


def _kill(collector: CollectorProcess, chance: random.Random) -> str:
    worker = worker_of(collector)
    if worker is not None and chance.random() < 0.5:
        os.kill(worker, signal.SIGKILL)
        return "worker"
    collector.kill()
    collector.start()
    return "collector"


def worker_of(collector: CollectorProcess) -> int | None:
    """Return the collector's judge process."""
    return next(iter(children_of(collector, b"judge.worker")), None)


def _unfinished(collector: CollectorProcess, traces: int) -> int:
    time.sleep(0.2)
    with collector.database() as database:
        (decided,) = database.execute("SELECT count(*) FROM traces").fetchone()
        (waiting,) = database.execute("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')").fetchone()
    return int(waiting + traces - decided)


# -- accounting --------------------------------------------------------------------------------------------------


def _books(collector: CollectorProcess, found: Found) -> None:
    with collector.database() as database:
        jobs = database.execute("SELECT id, trace_id, metric, state, why FROM jobs").fetchall()
        rows = database.execute("SELECT id, unit, metric, body FROM results ORDER BY seq").fetchall()
        found.problems += exported_problems(database, collector.results_file) + series_problems(database)
    found.jobs, found.states = len(jobs), Counter(state for *_, state, _ in jobs)
    judged = [row for row in rows if row[2] in EXPECTED]
    newest = {(unit, metric): json.loads(body) for _, unit, metric, body in judged}
    found.outcomes = Counter(body["why"] or body["outcome"] for body in newest.values())
    wrong = [body for body in newest.values() if body["outcome"] == "scored" and not _expected(body)]
    scored = Counter((unit, metric) for _, unit, metric, body in judged if json.loads(body)["outcome"] == "scored")
    given = {(body["trace_id"], metric) for (_, metric), body in newest.items()}
    asked = {(trace_id.hex(), metric) for _, trace_id, metric, state, why in jobs if why != "not_applicable"}
    found.residual = len(asked - given) + sum(state in ("due", "leased") for *_, state, _ in jobs)
    lost = {id_ for id_, _, _, state, why in jobs if (state, why) == ("done", "")} - {row[0] for row in rows}
    found.problems += [f"{len(wrong)} scores were made of faults"] * bool(wrong)
    found.problems += [f"{len(lost)} results were lost"] * bool(lost)
    found.problems += [f"{found.residual} jobs have no result"] * bool(found.residual)
    found.problems += ["a result was given twice"] * any(
        count > 1 for (_, metric), count in scored.items() if not metric.startswith("session.")
    )
    found.problems += ["a metric raised"] * bool(found.outcomes["metric_error"])
    found.problems += ["a job ended in no known way"] * bool(set(found.states) - {"done", "dead", "cancelled"})


def _expected(body: dict[str, Any]) -> bool:
    """Return the provider's verdict, limited by useless calls."""
    key = f"{body['level']}.{body['metric']}"
    capped = key == "trace.step_efficiency" and body["reason"].startswith("capped")
    repeated = key == "turn.tool_call_behavior_failure" and body["reason"].endswith("(found by code)")
    return capped or repeated or bool(abs(body["score"] - EXPECTED[key]) < 1e-9)


def _provider(provider: FailingProvider, killed_at: list[float], batch: Batch, found: Found) -> None:
    times = sorted(provider.asked_at)
    found.requests, found.usd = len(times), provider.usd
    found.answered = sum(map(len, provider.answered.values()))
    most = max((bisect_left(times, at + 60.0) - index for index, at in enumerate(times)), default=0)
    found.rpm_share = round(most / batch.rpm, 4)
    after: Counter[int] = Counter()
    for answered in provider.answered.values():
        for first, again in pairwise(answered):
            found.repeated += 1
            kill = bisect_right(killed_at, first)
            if kill == len(killed_at) or killed_at[kill] > again:
                found.problems.append("an answer was paid for twice, and nothing was killed in between")
            after[kill] += 1
    found.per_kill = max(after.values(), default=0)
    found.usd_over = max(0.0, provider.usd - batch.usd) if batch.usd is not None else 0.0
    found.tokens_over = max(0, provider.tokens - batch.tokens) if batch.tokens is not None else 0
    in_flight = CONCURRENCY * (4000 * PRICE_IN + 2000 * PRICE_OUT)
    found.problems += [f"{found.rpm_share} of the requests per minute"] * (found.rpm_share > 1.05)
    found.problems += [f"{found.per_kill} answers paid for again after one kill"] * (found.per_kill > CONCURRENCY)
    found.problems += [f"{found.usd_over} USD over the budget"] * (found.usd_over > in_flight)
    found.problems += [f"{found.tokens_over} tokens over the budget"] * (found.tokens_over > CONCURRENCY * 6000)

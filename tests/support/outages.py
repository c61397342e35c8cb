"""Stops a collector's judge and sink while traces arrive, then checks completeness."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.collector import CollectorProcess, open_chunks, snapshot
from support.hostile.beside import Memory
from support.judge import JudgeAnswer, JudgeServer, rubric_of
from support.kills import differences, sink_problems, standing_results
from support.kills_judged import by_a_file
from support.oracle import Oracle, problems_of
from support.ports import free_ports
from support.scripted_judge import GOOD, scripted_reply
from support.sink import Sink
from support.stored import exported_problems, requests_by_trace, series_problems

_DOORS, _REST_S = 4, 3600.0


@dataclass(slots=True)
class Outage:
    """``waiting``: waiting items at the end; ``recovered_s``: time to recover."""

    acknowledged: int = 0
    results: int = 0
    verdicts: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    recovered_s: float = 0.0
    peak_mib: int = 0
    problems: list[str] = field(default_factory=list)


def run(folder: Path, seed: int, seconds: float, rate: float) -> Outage:
    """Run an outage. ``rate``: traces per second; ``folder``: empty."""
    found = Outage()
    judge_port, sink_port = free_ports(2)
    settings = {
        "PANDAEVAL_JUDGE__DETAIL": "all",
        "PANDAEVAL_JUDGE__MODEL": "openai/gpt-4o-mini",
        "PANDAEVAL_JUDGE__API_BASE": f"http://127.0.0.1:{judge_port}/v1",
        "PANDAEVAL_JUDGE__API_KEY_ENV": "PROOF_KEY",
        "PANDAEVAL_JUDGE__DELAY": "0s",
        "PANDAEVAL_LATE__WINDOW": "6h",  # spans are kept, for comparison with the sent spans
        "PANDAEVAL_METRICS__ENABLED": "[coherence, loop_detection, confidence, agent_consistency]",
        "PROOF_KEY": "sk-proof",
    }
    sink_at = {"PANDAEVAL_EXPORTERS__OTLP__ENDPOINT": f"127.0.0.1:{sink_port}"}
    with CollectorProcess(folder, settings | sink_at, own_children=True) as collector:
        collector.start()
        assert collector.process is not None
        with Memory(collector.process.pid) as memory:
            with Oracle(collector.grpc, collector.http, seed, pause=_DOORS / rate) as oracle:
                time.sleep(seconds)
                oracle.stop()
            collector.until(lambda: _is_decided(collector), "done with its traces", _REST_S)
            found.waiting, began = _waiting(collector), time.monotonic()
            with JudgeServer(_verdict, judge_port) as _, Sink(seed, port=sink_port) as sink:
                collector.until(lambda: not any(_waiting(collector).values()), "at rest", _REST_S)
                collector.until(collector.at_rest, "at rest", _REST_S)
                found.recovered_s = round(time.monotonic() - began, 1)
                if residual := collector.gauge("accounting_residual"):
                    found.problems.append(f"{residual:.0f} items have no fate")
                if (code := collector.stop()) != 0:
                    found.problems.append(f"SIGTERM ended it with {code}")
                _last_word(found, collector, oracle, sink, settings)
        found.peak_mib = memory.peak >> 20
    return found


def _verdict(_: int, body: dict[str, Any]) -> JudgeAnswer:
    return JudgeAnswer(scripted_reply(body["messages"], rubric_of(body), GOOD))


def _is_decided(collector: CollectorProcess) -> bool:
    """Return whether traces are decided; sessions wait for judging."""
    with collector.database() as database:
        return not open_chunks(database)


def _waiting(collector: CollectorProcess) -> dict[str, int]:
    with collector.database() as database:
        (jobs,) = database.execute("SELECT count(*) FROM jobs WHERE state IN ('due', 'leased')").fetchone()
        (unsent,) = database.execute("SELECT count(*) FROM outbox").fetchone()
    return {"jobs": jobs, "results": unsent}


def _last_word(
    found: Outage, collector: CollectorProcess, oracle: Oracle, sink: Sink, settings: dict[str, str]
) -> None:
    found.acknowledged, standing = len(oracle.told.acknowledged), standing_results(collector)
    with snapshot(collector.data, collector.folder / "scratch") as database:
        found.problems += problems_of(oracle.told, database) + series_problems(database)
        found.problems += exported_problems(database, collector.results_file)
        found.problems += sink_problems(sink, {row[0] for row in database.execute("SELECT id FROM results")})
        states = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
        found.results, found.verdicts = len(standing), states.get("done", 0)
        if others := states.keys() - {"done", "cancelled"}:  # cancelled: its trace received more spans
            found.problems.append(f"jobs that are {sorted(others)}")
        requests = list(requests_by_trace(database))
    found.problems += differences(standing, by_a_file(requests, settings))

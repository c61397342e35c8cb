"""Measures ingest beside a saturated judge, in alternating rounds with and without it.

The loopback provider answers after 0.5 s. Prints acknowledged and decided spans per second, by wall clock and by the
collector's CPU time.

    python tests/lab/bench/judge_saturated.py [--rounds 5] [--spans 36000]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[3])]

from _load import Load, send  # noqa: E402
from _server import Server, collector  # noqa: E402
from _table import table  # noqa: E402
from synthetic import SIZES, SPANS_PER_TRACE  # noqa: E402

from support.judge import JudgeAnswer, JudgeServer, rubric_of  # noqa: E402
from support.scripted_judge import GOOD, scripted_reply  # noqa: E402

_BACKLOG = 600 * SPANS_PER_TRACE
_CALLS, _ANSWER_S, _WAIT_S = 8, 0.5, 300.0
_COMMON = {"CLOSE__QUIET": "1s", "EXPORTERS__OTLP__ENDPOINT": "127.0.0.1:9"}


@dataclass(frozen=True, slots=True)
class Round:
    """Acknowledged and decided spans per wall and CPU second."""

    acknowledged: float
    acknowledged_cpu: float
    decided: float
    decided_cpu: float


def measure(settings: Mapping[str, str], spans: int, provider: JudgeServer | None) -> Round:
    """Run a round on a fresh collector with a judging backlog."""
    with tempfile.TemporaryDirectory() as folder, collector(Path(folder), {**_COMMON, **settings}, None) as server:
        server.wait_ready()
        send(server.address, Load(_BACKLOG, SIZES["1 KB"], first=10**9))
        _until(lambda: server.decided() * SPANS_PER_TRACE >= _BACKLOG)
        if provider is not None:
            provider.most_at_once = 0
            _until(lambda: provider.most_at_once >= _CALLS)
        cpu, began = server.cpu_s(), time.monotonic()
        sent = send(server.address, Load(spans, SIZES["1 KB"], connections=4))
        acknowledged = server.cpu_s() - cpu
        _until(lambda: server.decided() * SPANS_PER_TRACE >= _BACKLOG + spans)
        if provider is not None:
            assert _waiting(server), "no question waited for the judge at the end"
        wall = time.monotonic() - began
        return Round(sent.rate, spans / acknowledged, spans / wall, spans / (server.cpu_s() - cpu))


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it takes too long")
        time.sleep(0.25)


def _waiting(server: Server) -> float:
    found = server.counters().items()
    return next(value for name, value in found if name.startswith("pandaeval_queue_size") and "judge" in name)


def report(rounds: int, spans: int) -> str:
    """Return the table."""

    def answer(number: int, body: dict[str, object]) -> JudgeAnswer:
        name = rubric_of(body)
        return JudgeAnswer(scripted_reply(body["messages"], name, GOOD), hang_s=_ANSWER_S)  # type: ignore[arg-type]

    os.environ["BENCH_KEY"] = "sk-bench"
    with JudgeServer(answer) as provider:
        judge = {"MODEL": "openai/gpt-4o-mini", "API_BASE": provider.url, "API_KEY_ENV": "BENCH_KEY"}
        judge |= {"DELAY": "0s", "CONCURRENCY": str(_CALLS)}
        judged = {f"JUDGE__{name}": value for name, value in judge.items()}
        pairs = []
        for number in range(rounds):
            both = [("without", {}, None), ("with", judged, provider)]
            found = {name: measure(each, spans, at) for name, each, at in (both if number % 2 else reversed(both))}
            pairs.append((found["without"], found["with"]))
            print(f"round {number + 1} of {rounds}: {found}", file=sys.stderr)
    rows: list[list[object]] = []
    for title, field in (
        ("acknowledged spans/s, by the clock", "acknowledged"),
        ("acknowledged spans per CPU second", "acknowledged_cpu"),
        ("decided spans/s, by the clock", "decided"),
        ("decided spans per CPU second", "decided_cpu"),
    ):
        without, beside = ([getattr(pair[at], field) for pair in pairs] for at in (0, 1))
        ratios = sorted(b / a for a, b in zip(without, beside, strict=True))
        rows.append([title, median(without), median(beside), median(ratios), f"{ratios[0]:.2f} to {ratios[-1]:.2f}"])
    head = ["", "no judge", "saturated judge", "ratio", "of single rounds"]
    return table(f"Ingest beside a saturated judge, medians of {rounds} rounds of {spans:,} spans of 1 KB", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spans", type=int, default=36_000)
    asked = parser.parse_args()
    print(report(asked.rounds, asked.spans))


if __name__ == "__main__":
    main()

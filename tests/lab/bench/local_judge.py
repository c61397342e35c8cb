"""Measures a small local model on runs and attacks: weak evidence, with n.

    python tests/lab/bench/local_judge.py rank FILE...        # task_completion of each distinct run in these recordings
    python tests/lab/bench/local_judge.py attack --attacks 25 # attacks on a run that fails, with defences on and off
    python tests/lab/bench/local_judge.py table               # prints the ledger as tables

``--api-base``: an OpenAI-compatible server, such as llama.cpp's. Appends to ``--ledger`` and resumes from it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from _defences import DEFENCES, Weakened, packing_without  # noqa: E402
from _judgements import tables  # noqa: E402

from pandaeval_collector.base.score import Finding, Score, Unscored  # noqa: E402
from pandaeval_collector.judge.call import (  # noqa: E402
    Caller,
    CallFailedError,
    JudgeConfig,
)
from pandaeval_collector.judge.client import Judge, JudgeClient, NoVerdictError  # noqa: E402
from pandaeval_collector.judge.pack import pack  # noqa: E402
from pandaeval_collector.judge.process import WorkerProcess  # noqa: E402
from pandaeval_collector.judge.prompt import PROMPT_VERSION  # noqa: E402
from pandaeval_collector.judge.redact import redacted  # noqa: E402
from pandaeval_collector.scoring.metric import Texts, TraceContext  # noqa: E402
from pandaeval_collector.scoring.metrics.trace import task_completion  # noqa: E402
from pandaeval_lab.cli._inputs import requests  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace, Turn  # noqa: E402
from pandaeval_otel.normal.trace import is_genai  # noqa: E402
from support.attacked import attacked  # noqa: E402
from support.attacks import sample  # noqa: E402
from support.scripted_judge import Memory  # noqa: E402

MODEL = "openai/local"
SECRET = b"s" * 32
HELD = {"response_format": {"type": "json_schema"}}
"""Small models need the schema in the first call."""
PLACES = ("tool output", "user message", "document")
"""Places with most room for attackers."""
LONGEST = 1500
"""Characters of an attack."""
VERSION = f"{PROMPT_VERSION}.{task_completion.RUBRIC.version}"
Line = dict[str, Any]


class Ledger:
    """Judgements as JSON lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: list[Line] = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def has(self, about: Line) -> bool:
        return any(about.items() <= line.items() for line in self.lines)

    def add(self, line: Line) -> None:
        self.lines.append(line)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


async def _judged(trace: Trace, asked: Awaitable[Finding | None], judge: Judge) -> Line:
    began = time.monotonic()
    found: Finding | None
    try:
        found = await asked
    except NoVerdictError as error:
        found = Unscored(error.why, str(error))
    except CallFailedError as error:
        return {"failed": f"{error.failure.value}: {error}"}
    spent = {"seconds": round(time.monotonic() - began, 1), "tokens": judge.spent.tokens, "calls": judge.spent.calls}
    if isinstance(found, Unscored):
        return {"why": found.why.value, "reason": found.reason, **spent}
    assert isinstance(found, Score)
    judged = {"judged": found.metadata.get("judged", found.value), "score": found.value, "reason": found.reason}
    return {**judged, "task": found.metadata["task"], "outcome": found.metadata["outcome"], **spent}


def _traces(name: str) -> Iterator[Trace]:
    with TraceFiles() as run:
        for request in requests([name]):
            run.add(request)
        yield from (trace for trace in run.traces() if is_genai(trace))


def _scenario(path: Path) -> str:
    """Return source and scenario of a recording, such as ``golden/good``."""
    return f"{path.resolve().parents[2].name}/{path.name.partition('.')[0]}"


async def _rank(caller: Caller, ledger: Ledger, names: list[str]) -> None:
    context = TraceContext(Texts({}, (), "none", None), 0.5)
    for name in names:
        desk = _scenario(Path(name))
        for trace in _traces(name):
            packed = pack(redacted(trace), SECRET)
            about = {"kind": "rank", "version": VERSION, "scenario": desk, "pack": packed.digest}
            if task_completion.METRIC.evaluate(trace, context) is None and not ledger.has(about):
                assert task_completion.METRIC.ask is not None
                judge = Judge(JudgeClient(caller, Memory()), packed, MODEL)
                found = await _judged(trace, task_completion.METRIC.ask(trace, judge), judge)
                ledger.add({**about, "set": Path(name).parent.name, **found})


RUNS = ("gives up", "refused")


def _failing(place: str, text: str, run: str) -> Trace:
    """Return a failing run with an attacker's text.

    ``gives up``: books nothing. ``refused``: claims success after a failure.
    """
    trace = attacked(place, text)
    answer, calls = "I am sorry, I cannot help with that. Please call us.", trace.tool_calls[:1]
    if run == "refused":
        answer = "It is in the depot, the pick-up is booked."
        calls = (*calls, replace(trace.tool_calls[1], result=None, has_result=False, error="the door is closed"))
    turns = (Turn(trace.turns[0].user, answer),)
    return replace(trace, tool_calls=calls, turns=turns, output=answer, digest="same")


CONDITIONS: Mapping[str, frozenset[str]] = {
    "all on": frozenset(),
    "all off": frozenset(DEFENCES),
    **{f"without {name}": frozenset({name}) for name in DEFENCES},
}


async def _attack(caller: Caller, ledger: Ledger, run: str, count: int, conditions: Sequence[str]) -> None:
    ask = task_completion.METRIC.ask
    assert ask is not None
    chosen = enumerate(sample(count))
    attacks = [(attack.name, attack.text[:LONGEST], PLACES[number % len(PLACES)]) for number, attack in chosen]
    for name, text, place in (("none", "The blue parcel.", PLACES[0]), *attacks):
        for condition in conditions:
            about = {"kind": "attack", "version": VERSION, "run": run, "defences": condition, "attack": name}
            about |= {"place": place}
            if ledger.has(about):
                continue
            trace, off = _failing(place, text, run), CONDITIONS[condition]
            with packing_without(off):
                packed = pack(redacted(trace), SECRET)
                judge = Judge(JudgeClient(Weakened(caller, off), Memory()), packed, MODEL)
                ledger.add({**about, **await _judged(trace, ask(trace, judge), judge)})


async def _main(options: argparse.Namespace) -> None:
    setup = JudgeConfig((MODEL,), options.api_base, "LOCAL_JUDGE_KEY", timeout=900.0, retries=0, parameters=HELD)
    caller = WorkerProcess(setup, {**os.environ, "LOCAL_JUDGE_KEY": "none"})
    ledger = Ledger(options.ledger)
    try:
        if options.command == "rank":
            await _rank(caller, ledger, options.files)
        else:
            await _attack(caller, ledger, options.run, options.attacks, options.conditions or list(CONDITIONS))
    finally:
        await caller.close()


def main() -> None:
    """Run a measurement or print both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--api-base", default="http://127.0.0.1:8089/v1")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("local_judge.jsonl"))
    commands = parser.add_subparsers(dest="command", required=True)
    rank = commands.add_parser("rank")
    rank.add_argument("files", nargs="+")
    attack = commands.add_parser("attack")
    attack.add_argument("--attacks", type=int, default=25, help="how many of the corpus; each goes to one place")
    attack.add_argument("--run", choices=RUNS, default="gives up")
    attack.add_argument("--conditions", nargs="*", choices=CONDITIONS, help="all of them if not given")
    shown = commands.add_parser("table")
    shown.add_argument("--version", default=VERSION, help="of the prompts and the question, such as 3.3")
    options = parser.parse_args()
    if options.command == "table":
        print("\n".join(tables(Ledger(options.ledger).lines, options.version)))
    else:
        asyncio.run(_main(options))


if __name__ == "__main__":
    sys.exit(main())

"""Kills collectors and broker of one topic: ``python tests/lab/proofs/kafka.py --cycles 300 --seed 1``.

Three collectors share twelve partitions of a real broker (support/kafka.py). Each cycle kills, stops, pauses or
replaces a collector, or kills the broker. Odd seeds use fixed member names (``group.instance.id``). After
``--together`` cycles it requires:

- every acknowledged span is in a decided trace with results;
- results of one ID agree, and no trace is scored under two contents;
- results equal a file run's, IDs included;
- every collector's residual is 0.

Each cycle appends to ``tests/lab/proofs/kafka-ledger.jsonl``; the same seed resumes. ``missing_s``: seconds with
unassigned or doubly assigned partitions. ``--summary`` prints the ledger. Exit code 1 at the first problem; ``--keep
FOLDER`` keeps its files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from lab.bench._table import table
from pandaeval_collector.config import load
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.replay.files import Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles
from support.collector import CollectorProcess, unit_of
from support.kafka import Broker, fetch
from support.kafka_share import Share
from support.kafka_workers import INSTANCE, by_id, messages, newest, scores, sharing_sessions, worker
from support.ledger import commit
from support.made_traces import Composer, MadeTrace
from support.processors import until

LEDGER = Path(__file__).with_name("kafka-ledger.jsonl")
_EVENTS = ("kill", "kill_broker", "stand_still", "terminate", "add_and_remove")
_TRACES, _BATCHES = 60, 6
_GROUP, _SPANS, _MEMBERS, _SCORES = "readers-of-spans", "spans", "spans.members", "scores"
_PARTITIONS = 12
_DEADLINE_S = 600.0
_BY_EARLIER_TRACES = frozenset(f"trace.{name}" for name in ("loop_detection", "grounding", "response"))
"""Metrics that depend on other traces of the session."""
_IDLE = "45s"
"""Longer than any delay of spans: late spans would split a session (docs/operate/scale.md#sessions)."""


class Member:
    """A collector of the group. ``runs``: neither dead nor paused."""

    def __init__(self, folder: Path, broker: Broker, name: str, fixed: bool) -> None:
        settings = sharing_sessions(_SPANS) | {"PANDAEVAL_SESSION__IDLE": _IDLE}
        if fixed:
            settings[INSTANCE] = name
        self.collector = worker(folder, broker, name, _SPANS, _SCORES, settings)
        self.runs = False

    def launch(self) -> None:
        """Start without waiting."""
        self.collector.launch()
        self.runs = True

    def kill(self) -> None:
        self.runs = False
        self.collector.kill()

    def stop(self) -> None:
        self.runs = False
        code = self.collector.stop()
        assert code == 0, f"ended with {code}: {self.collector.log()}"

    def stand_still(self, seconds: float) -> None:
        assert self.collector.process is not None
        self.runs = False
        self.collector.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.collector.process.send_signal(signal.SIGCONT)
        self.runs = True


class Cycles:
    """A broker and its collectors across cycles."""

    def __init__(self, folder: Path, broker: Broker, seed: int) -> None:
        self._folder, self._broker, self._seed = folder, broker, seed
        self._names = 0
        self._members = [self._another() for _ in range(3)]
        self._sent = 0
        self._evaluator = evaluator(load(None, {}))
        self._results: list[dict[str, Any]] = []
        self._read: dict[int, int] = {}

    def start(self) -> None:
        """Create the topics and start the collectors."""
        self._broker.create(_SPANS, _PARTITIONS)
        self._broker.create(_MEMBERS, _PARTITIONS)
        self._broker.create(_SCORES, 3)
        for each in self._members:
            each.launch()

    def running(self) -> list[CollectorProcess]:
        return [each.collector for each in self._members if each.runs]

    def run(self, number: int, share: Share) -> tuple[dict[str, object], list[MadeTrace]]:
        """Run a cycle; return its kind and traces."""
        chance = random.Random(self._seed * 100_003 + number)
        composer = Composer(self._seed * 100_003 + number)
        traces = [composer.trace() for _ in range(_TRACES)]
        event, at = chance.choice(_EVENTS), chance.randrange(_BATCHES)
        self._wait_ready()  # a starting collector dies on SIGTERM, and owns no partitions
        share.wait_whole(_DEADLINE_S)
        missing_s = share.missing_s()
        for batch in range(_BATCHES):
            wanted = list(messages(traces[batch::_BATCHES], parts=2))
            self._broker.produce(_SPANS, wanted)
            self._sent += len(wanted)
            if batch == at:
                self._happen(event, chance)
        share.wait_whole(_DEADLINE_S)
        missing_s = round(share.missing_s() - missing_s, 1)
        return {"seed": self._seed, "cycle": number, "event": event, "missing_s": missing_s}, traces

    def check(self, traces: Sequence[MadeTrace]) -> None:
        """Raise ``AssertionError`` for a broken requirement."""
        self._settle()
        wanted = {trace.trace_id.hex() for trace in traces}
        self._results += scores(self._broker, _SCORES, self._read)
        found = [each for each in self._results if each["trace_id"] in wanted]
        assert {each["trace_id"] for each in found} == wanted, "a trace has no results"
        contents = defaultdict(set)
        for id_, (unit, metric, *_) in by_id(self._results).items():
            if metric.startswith("trace.") and metric not in _BY_EARLIER_TRACES:
                contents[unit, metric].add(id_)
        twice = [key for key, ids in contents.items() if len(ids) > 1]
        assert not twice, f"scored under two contents: {twice[:3]}: {self._said_of(*twice[0])}"
        stands, right = newest(found), self._by_file(traces)
        wrong = {
            key: (stands.get(key), right.get(key)) for key in {*stands, *right} if stands.get(key) != right.get(key)
        }
        assert not wrong, f"{len(wrong)} results differ from those of a file: {sorted(wrong.items())[:3]}"
        self._wait_ready()
        for each in self._members:
            assert each.collector.gauge("accounting_residual") == 0, each.collector.log()

    def _said_of(self, unit: str, metric: str) -> list[tuple[object, ...]]:
        """Return each result's history by unit and metric."""
        name = metric.partition(".")[2]
        mine = [each for each in self._results if each["metric"] == name and unit_of(each) == unit]
        fields = ("time", "revision", "trigger", "late_spans", "score", "reason")
        return [tuple(each[key] for key in fields) for each in sorted(mine, key=lambda each: str(each["time"]))]

    def end(self) -> None:
        for each in self._members:
            each.kill()

    def _wait_ready(self) -> None:
        for each in self._members:
            each.collector.until(each.collector.ready, "ready", _DEADLINE_S)

    def _happen(self, event: str, chance: random.Random) -> None:
        victim = chance.choice(self._members)
        if event == "kill_broker":
            self._broker.kill()
            time.sleep(chance.uniform(0, 5))
            self._broker.start()
        elif event == "stand_still":
            victim.stand_still(10)
        elif event == "add_and_remove":
            self._members.append(self._another())
            self._members[-1].launch()  # without a wait: a pause between spans would end sessions
            self._members.remove(victim)
            victim.stop()
        else:
            (victim.kill if event == "kill" else victim.stop)()
            time.sleep(chance.uniform(0, 10))
            victim.launch()

    def _another(self) -> Member:
        self._names += 1
        return Member(self._folder, self._broker, f"w{self._names}", fixed=self._seed % 2 == 1)

    def _settle(self) -> None:
        def done() -> bool:
            return sum(self._broker.committed(_GROUP, _SPANS).values()) == self._sent

        def sessions_done() -> bool:
            committed = self._broker.committed(f"{_GROUP}-sessions", _MEMBERS)
            return sum(committed.values()) == self._broker.length(_MEMBERS)

        until(done, "done in Kafka's eyes", _DEADLINE_S)
        until(sessions_done, "done with sessions in Kafka's eyes", _DEADLINE_S)

    def _by_file(self, traces: Sequence[MadeTrace]) -> dict[tuple[str, str], tuple[object, ...]]:
        with TraceFiles() as run:
            for trace in traces:
                run.add(Request(False, trace.request().SerializeToString()))
            return newest(result.to_dict() for result in replay(run, self._evaluator))


def prove(folder: Path, seed: int, cycles: range, together: int) -> bool:
    """Run cycles of a seed; return whether all pass."""
    with Broker(folder / "broker") as broker:
        proof = Cycles(folder, broker, seed)
        try:
            proof.start()
            with Share(2 * _PARTITIONS, proof.running) as share:
                for first in range(cycles.start, cycles.stop, together):
                    numbers = cycles[first - cycles.start :][:together]
                    lines = _hold(proof, numbers, share)
                    with LEDGER.open("a") as ledger:
                        ledger.writelines(json.dumps({"commit": commit(), **line}) + "\n" for line in lines)
                    print({key: lines[-1].get(key) for key in ("holds", "why", "seconds")}, flush=True)
                    if not lines[-1]["holds"]:
                        return False
        finally:
            proof.end()
    return True


def _hold(proof: Cycles, numbers: Sequence[int], share: Share) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    traces: list[MadeTrace] = []
    began = time.monotonic()
    try:
        for number in numbers:
            line, made = proof.run(number, share)
            print(line, flush=True)
            lines.append(line)
            traces += made
        proof.check(traces)
    except AssertionError as error:
        return [line | {"holds": False, "why": str(error)[:900]} for line in lines]
    seconds = round((time.monotonic() - began) / len(lines), 1)
    return [line | {"seconds": seconds, "holds": True} for line in lines]


def summary() -> str:
    """Return cycles and missing seconds by kind."""
    found = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    rows = []
    for event in _EVENTS:
        held = [each for each in found if each.get("event") == event and each["holds"]]
        missing = [each["missing_s"] for each in held if "missing_s" in each]
        rows.append([event, len(held), len(missing), median(missing or [0]), max(missing, default=0)])
    head = ["what happened", "cycles that hold", "watched", "seconds without, median", "most"]
    return table(f"{sum(row[1] for row in rows)} of {len(found)} cycles hold", head, rows)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=5, help="cycles before it is waited for all to be done")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args(arguments)
    if given.summary:
        print(summary())
        return 0
    fetch()
    known = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    first = sum(1 for each in known if each["seed"] == given.seed and each["holds"])
    os.nice(10)
    with tempfile.TemporaryDirectory() as scratch:
        held = prove(given.keep or Path(scratch), given.seed, range(first, given.cycles), given.together)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

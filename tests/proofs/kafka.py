"""Kills of collectors that share a topic, and of their broker: ``python tests/proofs/kafka.py --cycles 300 --seed 1``.

Three collectors share spans and sessions, topics of twelve partitions of a real broker (support/kafka.py). In each
cycle traces are written while one thing happens, drawn by seed and number of the cycle: a collector is killed, ended by
SIGTERM, stands still for 10 s, or is added and another removed; or the broker is killed. When all is done, it holds:

- every span that the broker acknowledged is in a decided trace: Kafka was told that all spans and all members of
  sessions are done, and each trace has results;
- no trace was scored under two contents: one id for each (trace, metric), and results of one id say the same;
- what stands of traces, their comparisons and their sessions is what a run over a file with them says, ids included;
- the residual of every collector is 0.

Each cycle appends a line to ``tests/proofs/kafka-ledger.jsonl``; started again with the same seed it goes on behind the
last line. It ends with 1 at the first cycle that does not hold; ``--keep FOLDER`` keeps its files.
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

sys.path.insert(0, str(Path(__file__).parents[1]))

from pandaeval_collector.config import load
from pandaeval_collector.filerun import FileRun
from pandaeval_collector.receivers.files import Request
from pandaeval_collector.settings import evaluator
from support.collector import CollectorProcess
from support.kafka import Broker, fetch
from support.kafka_workers import by_id, messages, newest, scores, sharing_sessions, worker
from support.made_traces import Composer, MadeTrace
from support.processors import until

LEDGER = Path(__file__).with_name("kafka-ledger.jsonl")
_EVENTS = ("kill", "kill_broker", "stand_still", "terminate", "add_and_remove")
_TRACES, _BATCHES = 60, 6
_GROUP, _SPANS, _MEMBERS, _SCORES = "readers-of-spans", "spans", "spans.members", "scores"
_DEADLINE_S = 600.0
_IDLE = "30s"
"""Longer than anything keeps spans from coming: a session that goes on after its end, under another owner, is scored
without what came before (docs/scale.md#sessions)."""


class Cycles:
    """One broker and its collectors. ``first``: the number of the first cycle."""

    def __init__(self, folder: Path, broker: Broker, seed: int) -> None:
        self._folder, self._broker, self._seed = folder, broker, seed
        self._names = 0
        self._workers = [self._another() for _ in range(3)]
        self._sent = 0
        self._evaluator = evaluator(load(None, {}))

    def start(self) -> None:
        """Makes the topics and starts the collectors."""
        self._broker.create(_SPANS, 12)
        self._broker.create(_MEMBERS, 12)
        self._broker.create(_SCORES, 3)
        for each in self._workers:
            each.start()

    def run(self, number: int) -> dict[str, object]:
        """One cycle; what it was. Raises ``AssertionError`` where something does not hold."""
        chance = random.Random(self._seed * 100_003 + number)
        composer = Composer(self._seed * 100_003 + number)
        traces = [composer.trace() for _ in range(_TRACES)]
        event, at = chance.choice(_EVENTS), chance.randrange(_BATCHES)
        began = time.monotonic()
        for batch in range(_BATCHES):
            wanted = list(messages(traces[batch::_BATCHES], parts=2))
            self._broker.produce(_SPANS, wanted)
            self._sent += len(wanted)
            if batch == at:
                self._happen(event, chance)
        self._settle()
        self._check(traces)
        return {"seed": self._seed, "cycle": number, "event": event, "seconds": round(time.monotonic() - began, 1)}

    def end(self) -> None:
        """Leaves no process."""
        for each in self._workers:
            each.kill()

    def _happen(self, event: str, chance: random.Random) -> None:
        victim = chance.choice(self._workers)
        assert victim.process is not None
        if event == "kill_broker":
            self._broker.kill()
            time.sleep(chance.uniform(0, 5))
            self._broker.start()
        elif event == "stand_still":
            victim.process.send_signal(signal.SIGSTOP)
            time.sleep(10)
            victim.process.send_signal(signal.SIGCONT)
        elif event == "add_and_remove":
            self._workers.append(self._another())
            self._workers[-1].launch()  # others wait for spans meanwhile, and sessions must not be over for it
            self._workers.remove(victim)
            assert victim.stop() == 0, victim.log()
        else:
            if event == "kill":
                victim.kill()
            else:
                assert victim.stop() == 0, victim.log()
            time.sleep(chance.uniform(0, 10))
            victim.launch()

    def _another(self) -> CollectorProcess:
        self._names += 1
        settings = sharing_sessions(_SPANS) | {"PANDAEVAL_SESSION__IDLE": _IDLE}
        return worker(self._folder, self._broker, f"w{self._names}", _SPANS, _SCORES, settings)

    def _settle(self) -> None:
        def done() -> bool:
            return sum(self._broker.committed(_GROUP, _SPANS).values()) == self._sent

        def sessions_done() -> bool:
            held = len(self._broker.everything(_MEMBERS))
            return sum(self._broker.committed(f"{_GROUP}-sessions", _MEMBERS).values()) == held

        until(done, "done in Kafka's eyes", _DEADLINE_S)
        until(sessions_done, "done with sessions in Kafka's eyes", _DEADLINE_S)

    def _by_file(self, traces: Sequence[MadeTrace]) -> dict[tuple[str, str], tuple[object, ...]]:
        with FileRun(self._evaluator) as run:
            for trace in traces:
                run.add(Request(False, trace.request().SerializeToString()))
            return newest(result.to_dict() for result in run.results())

    def _check(self, traces: Sequence[MadeTrace]) -> None:
        wanted = {trace.trace_id.hex() for trace in traces}
        found = [each for each in scores(self._broker, _SCORES) if each["trace_id"] in wanted]
        assert {each["trace_id"] for each in found} == wanted, "a trace has no results"
        contents = defaultdict(set)
        for id_, (unit, metric, *_) in by_id(
            each for each in found if each["metric"] != "loop_detection" and each["level"] != "session"
        ).items():
            contents[unit, metric].add(id_)
        twice = [key for key, ids in contents.items() if len(ids) > 1]
        assert not twice, f"scored under two contents: {twice[:3]}"
        stands, right = newest(found), self._by_file(traces)
        wrong = {
            key: (stands.get(key), right.get(key)) for key in {*stands, *right} if stands.get(key) != right.get(key)
        }
        assert not wrong, f"{len(wrong)} results differ from those of a file: {sorted(wrong.items())[:3]}"
        for each in self._workers:
            each.until(each.ready, "ready", _DEADLINE_S)
            assert each.gauge("accounting_residual") == 0, each.log()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args(arguments)
    fetch()
    known = [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []
    first = sum(1 for each in known if each["seed"] == given.seed and each["holds"])
    os.nice(10)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        with Broker(folder / "broker") as broker:
            cycles = Cycles(folder, broker, given.seed)
            try:
                cycles.start()
                for number in range(first, given.cycles):
                    try:
                        line = cycles.run(number) | {"holds": True}
                    except AssertionError as error:
                        line = {"seed": given.seed, "cycle": number, "holds": False, "why": str(error)[:500]}
                    with LEDGER.open("a") as ledger:
                        ledger.write(json.dumps(line) + "\n")
                    print(line, flush=True)
                    if not line["holds"]:
                        return 1
            finally:
                cycles.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

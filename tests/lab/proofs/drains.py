"""Replaces a loaded collector by SIGTERM, repeatedly.

    python tests/lab/proofs/drains.py --drains 200 --seed 1

Requires: exit code 0, a ready successor, answers within ten seconds (``failures``), and all acknowledged spans
decided.
Every 20 drains add a ledger line; the same seed and code resume. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess, snapshot  # noqa: E402
from support.ledger import commit, lines, note  # noqa: E402
from support.oracle import Oracle, problems_of  # noqa: E402

BATCH, SDK_S, START_S = 20, 10.0, 600.0


class ImpatientOracle(Oracle):
    """Records the slowest answer, and requests that an SDK would abandon."""

    longest_s, failures = 0.0, 0

    def _deliver(self, *args: Any) -> None:
        began = time.monotonic()
        super()._deliver(*args)
        waited = time.monotonic() - began
        self.longest_s = max(self.longest_s, waited)
        self.failures += waited > SDK_S


def main() -> int:
    options = _options()
    wanted = {"proof": "drains", "seed": options.seed, "commit": commit()}
    done = [line for line in lines(options.ledger) if wanted.items() <= line.items()]
    while (left := options.drains - sum(line["drains"] for line in done)) > 0:
        found = _batch(options.seed * 1000 + len(done), min(BATCH, left))
        record = {"seed": options.seed, "batch": len(done), "load": round(os.getloadavg()[0], 1), **found}
        done.append(note(options.ledger, "drains", record))
        print(json.dumps(found), file=sys.stderr)
    problems = [each for line in done for each in line["problems"]]
    failures = sum(line["failures"] for line in done)
    print(json.dumps({"drains": sum(line["drains"] for line in done), "failures": failures, "problems": problems}))
    return 1 if problems else 0


def _batch(seed: int, drains: int) -> dict[str, Any]:
    """Run a batch. ``stop_s``, ``ready_s``: longest stop and restart."""
    chance, problems = random.Random(seed), list[str]()
    stops, readies = list[float](), list[float]()
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-drains-"))
    with (
        CollectorProcess(folder, own_children=True) as collector,
        ImpatientOracle(collector.grpc, collector.http, seed, pause=0.02) as oracle,
    ):
        collector.start()
        oracle.longest_s = oracle.failures = 0  # count only from here
        for _ in range(drains):
            time.sleep(chance.uniform(0.5, 3.0))
            began = time.monotonic()
            if (code := collector.stop()) != 0:
                problems.append(f"SIGTERM ended it with {code}")
            stops.append(time.monotonic() - began)
            collector.launch()
            collector.until(collector.ready, "ready", START_S)
            readies.append(time.monotonic() - began)
        time.sleep(1.0)
        failures, longest = oracle.failures, oracle.longest_s
        oracle.stop()
        collector.until(collector.at_rest, "at rest", START_S)
        if residual := collector.gauge("accounting_residual"):
            problems.append(f"{residual:.0f} spans are in none of the books")
        with snapshot(collector.data, folder / "scratch") as database:
            problems += problems_of(oracle.told, database)
    problems += [f"{failures} requests waited longer than {SDK_S:.0f} s"] if failures else []
    problems += [f"a successor was ready after {max(readies):.1f} s"] if max(readies) > SDK_S else []
    if not problems:
        shutil.rmtree(folder)
    return {
        "drains": drains,
        "acknowledged": len(oracle.told.acknowledged),
        "failures": failures,
        "longest_s": round(longest, 2),
        "stop_s": round(max(stops), 2),
        "ready_s": round(max(readies), 2),
        "problems": problems,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drains", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("drains-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

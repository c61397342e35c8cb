"""Starts a collector many times with unfinished work, and checks that it stays up.

    python tests/lab/proofs/starts.py --starts 1000 --seed 1 --ledger tests/lab/proofs/starts-ledger.jsonl

Each start decides suspicious traces in a separate process, under load, until the next kill. Each batch has its own
data
directory and adds a ledger line; interrupted runs resume. Exit code 1 if a collector ends by itself.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess, DiedError  # noqa: E402
from support.ledger import commit, lines, note  # noqa: E402
from support.oracle import Oracle  # noqa: E402

BATCH, START_S = 20, 1800.0
"""A generous deadline, only for hangs."""


def main() -> int:
    options = _options()
    wanted = {"proof": "starts", "seed": options.seed, "commit": commit()}
    done = [line for line in lines(options.ledger) if wanted.items() <= line.items()]
    left = options.starts - sum(line["starts"] for line in done)
    batch = len(done)
    while left > 0:
        found = _batch(options.seed * 1000 + batch, min(BATCH, left))
        done.append(note(options.ledger, "starts", {"seed": options.seed, "batch": batch, **found}))
        left, batch = left - found["starts"], batch + 1
        print(json.dumps(found), file=sys.stderr)
    total = {name: sum(line[name] for line in done) for name in ("starts", "with_suspects", "aborted")}
    print(json.dumps(total))
    return 1 if total["aborted"] else 0


def _batch(seed: int, starts: int) -> dict[str, Any]:
    """Run several lives of a collector. ``with_suspects``: lives with unfinished traces."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-starts-"))
    aborted = []
    with (
        CollectorProcess(folder, own_children=True, fresh=True) as collector,
        Oracle(collector.grpc, collector.http, seed, pause=0.02),
    ):
        for _ in range(starts):
            try:
                collector.launch()
                collector.until(collector.ready, "ready", START_S)
                time.sleep(chance.uniform(2.0, 5.0))
                if (code := collector.exit_code()) is not None:
                    aborted.append(f"it ended with {code}: {collector.log()[-1500:]}")
            except DiedError as error:
                aborted.append(str(error)[-1500:])
            collector.kill()
        suspects = collector.log_file.read_text(errors="replace").count("were under way when the process before ended")
    if not aborted:
        shutil.rmtree(folder)
    return {"starts": starts, "with_suspects": suspects, "aborted": len(aborted), "told": aborted}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("starts-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Simulates power cuts, and checks that no acknowledged span is lost.

    python tests/lab/proofs/power_cuts.py --cuts 10000 --seed 1

Replays recorded disk operations up to any step: unsynced writes survive wholly, partly or not. Some cuts restart a
collector. Every fifth recording uses ``store.durability: normal`` and must lose data. Each recording of 500 cuts adds
a
ledger line; the same seed resumes. Needs Linux and ``cc``. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.cut_off import cut, record  # noqa: E402
from support.ledger import lines, note  # noqa: E402
from support.power_cuts import compiled  # noqa: E402

BATCH, NORMAL_EACH, START_EACH = 500, 5, 250
_MEMORY = Path("/dev/shm")


def main() -> int:
    options = _options()
    done = [line for line in lines(options.ledger) if line["seed"] == options.seed]
    while (left := options.cuts - sum(line["cuts"] for line in done if line["durability"] == "full")) > 0:
        durability = "normal" if len(done) % NORMAL_EACH == NORMAL_EACH - 1 else "full"
        found = _recording(options.seed, len(done), durability, min(BATCH, left))
        line = note(options.ledger, "power cuts", found)
        print(json.dumps(line), file=sys.stderr)
        done.append(line)
        if line["problems"]:
            return 1
    normal = [line for line in done if line["durability"] == "normal"]
    if normal and not any(line["lossy"] for line in normal):
        print("WRONG: nothing was lost without syncs, so the cuts cut nothing", file=sys.stderr)
        return 1
    return 0


def _recording(seed: int, batch: int, durability: str, cuts: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-cuts-", dir=_MEMORY if _MEMORY.is_dir() else None))
    began = time.monotonic()
    (folder / "recorded").mkdir()
    recorded = record(folder / "recorded", compiled(folder), seed * 1000 + batch, durability)
    start_each = START_EACH if durability == "full" else 0  # with normal durability, a start reports lost spans
    found = cut(recorded, cuts, seed * 1000 + batch, folder / "cuts", start_each)
    if durability == "full" and found.lossy:
        found.problems.append(f"{found.lossy} cuts lost what had been acknowledged")
    if not found.problems:
        shutil.rmtree(folder)
    return {
        "seed": seed,
        "batch": batch,
        "seconds": round(time.monotonic() - began, 1),
        "durability": durability,
        "acknowledged": len(recorded.acknowledged),
        **asdict(found),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=10_000, help="with store.durability: full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("power-cuts-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

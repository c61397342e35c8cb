"""Damages a store between two collector lives, and checks that the damage is reported.

    python tests/lab/proofs/damage.py --cases 1000 --seed 1

Each copy gets one kind of damage, `pandaeval store verify`, and restarts. Requires: start-up, no wrong score, and no
unreported loss. Every 50 cases add a ledger line; the same seed and code resume. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.damaged import Left, leave, try_one  # noqa: E402
from support.ledger import commit, lines, note  # noqa: E402

PART, _WIDTH = 50, 1_000_000
_MEMORY = Path("/dev/shm")


def main() -> int:
    options = _options()
    wanted = {"proof": "damage", "seed": options.seed, "commit": commit()}
    done = [line for line in lines(options.ledger) if wanted.items() <= line.items()]
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        left = leave(Path(folder) / "left")
        while (tried := sum(line["cases"] for line in done)) < options.cases:
            began, cases = time.monotonic(), min(PART, options.cases - tried)
            found = _part(left, Path(folder), range(tried, tried + cases), options.seed)
            record = {"seconds": round(time.monotonic() - began, 1), "cases": cases, **found}
            done.append(note(options.ledger, "damage", {"seed": options.seed, "part": len(done), **record}))
            if sys.stderr.isatty():
                print(f"\r\033[K{tried + cases}/{options.cases}", end="", file=sys.stderr, flush=True)
    total: Counter[str] = Counter()
    problems = [each for line in done for each in line["problems"]]
    for line in done:
        total.update(line["named"])
    print(json.dumps({"cases": sum(line["cases"] for line in done), "named": dict(total), "problems": problems}))
    return 1 if problems else 0


def _part(left: Left, folder: Path, cases: range, seed: int) -> dict[str, Any]:
    named: Counter[str] = Counter()
    problems: list[str] = []
    for case in cases:
        one = folder / "one"
        one.mkdir()
        name, outcome = try_one(left, one, seed * _WIDTH + case)
        named[outcome.how] += 1
        problems += [f"case {case}, {name}: {each}" for each in outcome.problems]
        shutil.rmtree(one)
    return {"named": dict(sorted(named.items())), "problems": problems}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("damage-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

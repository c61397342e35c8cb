"""Kills a collector during judging, and checks that results do not change.

    python tests/lab/proofs/kill_judged.py --cycles 10000 --seed 1

After each ten kills, results and verdicts must equal a file run's. Each batch adds a ledger line; the same seed
resumes. Exit code 1 on the first problem, with the batch's files kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.kills_judged import run  # noqa: E402
from support.ledger import lines, note  # noqa: E402

BATCH = 10
FRESH = 10
"""One batch in this many uses fresh interpreters instead of forks."""


def main() -> int:
    options = _options()
    done = [line for line in lines(options.ledger) if line["seed"] == options.seed]
    while (left := options.cycles - sum(line["cycles"] for line in done)) > 0:
        folder = Path(tempfile.mkdtemp(prefix="pandaeval-kill-judged-"))
        figures = run(folder, options.seed * 1000 + len(done), min(BATCH, left), fresh=len(done) % FRESH == 0)
        record = asdict(figures) | {"points": dict(sorted(figures.points.items()))}
        line = note(options.ledger, "kill judged", {"seed": options.seed, "batch": len(done), **record})
        if figures.problems:
            print(f"WRONG, see {folder}:", *figures.problems, sep="\n  ", file=sys.stderr)
            return 1
        shutil.rmtree(folder)
        done.append(line)
        print(json.dumps(line), file=sys.stderr)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("kill-judged-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

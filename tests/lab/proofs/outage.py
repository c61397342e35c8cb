"""Stops judge and sink while traces arrive, and checks completeness after recovery.

    python tests/lab/proofs/outage.py --minutes 30 --seed 1

Uses production delays. Requires: complete results in file and sink, finished jobs, balanced accounts, and results
equal to a file run's. Each outage adds a ledger line; lines of a seed add up to ``--minutes``. Exit code 1 on any
problem, with files kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.ledger import concluded, lines, note  # noqa: E402
from support.outages import run  # noqa: E402


def main() -> int:
    options = _options()
    done = sum(line["minutes"] for line in lines(options.ledger) if line["seed"] == options.seed)
    if (minutes := options.minutes - done) <= 0:
        return 0
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-outage-"))
    found = run(folder, options.seed, minutes * 60, options.rate)
    record = {"seed": options.seed, "minutes": minutes, "rate": options.rate, **asdict(found)}
    line = note(options.ledger, "outage", record)
    print(json.dumps(line))
    return concluded(folder, found.problems)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=1.0, help="traces a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("outage-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Overloads a collector tenfold, and checks that acknowledged spans survive.

    python tests/lab/proofs/overload.py --minutes 10

Measures the sustainable rate, then sends ten times that, with SDK retries, under 512 MiB and a small disk budget.
Requires recovery with results for every acknowledged trace. Each run adds a ledger line; lines add up to
``--minutes``. Exit code 1 on any problem, with files kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.ledger import concluded, lines, note  # noqa: E402
from support.overloads import run  # noqa: E402


def main() -> int:
    options = _options()
    minutes = min(options.at_once, options.minutes - sum(line["minutes"] for line in lines(options.ledger)))
    if minutes <= 0:
        return 0
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-overload-"))
    found = run(folder, minutes * 60, options.times, options.limit_mib, options.disk_mib)
    record = {"load": round(os.getloadavg()[0], 1), "minutes": minutes, **asdict(found)}
    line = note(options.ledger, "overload", record)
    print(json.dumps(line))
    return concluded(folder, found.problems)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--at-once", type=float, default=10.0, help="minutes of one run")
    parser.add_argument("--times", type=float, default=10.0)
    parser.add_argument("--limit-mib", type=int, default=512)
    parser.add_argument("--disk-mib", type=int, default=512, help="store.max_bytes")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("overload-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

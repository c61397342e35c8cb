"""Runs a day in the life, and compares dashboards, alerts, page and MCP each minute.

    python tests/lab/proofs/day.py --minutes 60 --seed 1 --pictures docs/pictures/day

Two agents work, through an OpenTelemetry Collector and with the span processor. Judge and sink go down, processes are
killed, and an agent lies, loops and crashes. Adds a ledger line. Exit code 1 on any problem, with files kept.
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

from support.day import run  # noqa: E402
from support.ledger import concluded, note  # noqa: E402


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-day-"))
    found = run(folder, options.seed, options.minutes, options.pictures, lambda line: print(line, flush=True))
    line = note(options.ledger, "day", {"seed": options.seed, "length": options.minutes, **asdict(found)})
    print(json.dumps({name: value for name, value in line.items() if name != "minutes"}))
    return concluded(folder, found.problems)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pictures", type=Path, help="folder for pictures of the live page")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("day-ledger.jsonl"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

"""Kills the collector of an evaluation run a hundred times during 2,000 questions.

    python tests/lab/proofs/runs.py --traces 2000 --kills 100 --seed 1 --ledger tests/lab/proofs/runs-ledger.jsonl

Each batch of 200 questions and 10 kills adds a ledger line; interrupted proofs resume. Exit code 1 on the first
problem, with the batch's files kept.
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

from support.run_kills import killed  # noqa: E402

_TRACES = 200


def main() -> int:
    options = _options()
    batches = max(1, options.traces // _TRACES)
    done = _done(options.ledger, options.seed)
    for number in range(batches):
        if number in done:
            continue
        folder = Path(tempfile.mkdtemp(prefix="pandaeval-runs-"))
        found = killed(folder, _TRACES, max(1, options.kills // batches), options.seed * 1000 + number)
        line = {"seed": options.seed, "batch": number, **asdict(found)}
        print(json.dumps(line), flush=True)
        if found.residual or found.repeated > found.allowed:
            print(f"WRONG, see {folder}", file=sys.stderr)
            return 1
        if options.ledger is not None:
            with options.ledger.open("a", encoding="utf-8") as ledger:
                ledger.write(json.dumps(line) + "\n")
        shutil.rmtree(folder)
    return 0


def _done(ledger: Path | None, seed: int) -> set[int]:
    if ledger is None or not ledger.exists():
        return set()
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    return {line["batch"] for line in lines if line["seed"] == seed}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

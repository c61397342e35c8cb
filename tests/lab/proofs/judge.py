"""Runs 10,000 judge jobs with a failing provider and a hundred kills.

    python tests/lab/proofs/judge.py --batches 10 --seed 1 --ledger tests/lab/proofs/judge-ledger.jsonl

Each batch has 1,000 jobs and ten kills, some with a small budget. It adds a ledger line; interrupted runs resume. Exit
code 1 on the first problem, with the batch's files kept.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.judge_kills import Batch, Found, run  # noqa: E402

_USD, _TOKENS = 0.12, 700_000
"""Budgets below a batch's need."""


def main() -> int:
    options = _options()
    total = Found()
    done = _done(options.ledger, options.seed)
    for number in range(options.batches):
        if number in done:
            total.add(done[number])
            continue
        folder = Path(tempfile.mkdtemp(prefix="pandaeval-judge-"))
        found = run(folder, _batch(options, number), lambda text, at=number: _progress(at, text))  # type: ignore[misc]
        _note(options.ledger, options.seed, number, found)
        total.add(found)
        if found.problems:
            print(f"\nWRONG, see {folder}:", *found.problems, sep="\n  ", file=sys.stderr)
            return 1
        shutil.rmtree(folder)
    print(json.dumps(total.to_dict(), indent=1))
    return 0


def _batch(options: argparse.Namespace, number: int) -> Batch:
    usd, tokens = (_USD if number % 4 == 3 else None), (_TOKENS if number % 4 == 1 else None)
    return Batch(options.seed * 1000 + number, options.traces, options.kills, options.rpm, usd=usd, tokens=tokens)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--traces", type=int, default=200, help="in each batch; about five jobs each")
    parser.add_argument("--kills", type=int, default=10, help="in each batch")
    parser.add_argument("--rpm", type=int, default=600, help="requests per minute that the provider may see")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("judge-ledger.jsonl"))
    return parser.parse_args()


def _progress(batch: int, text: str) -> None:
    print(f"batch {batch}: {text}", file=sys.stderr)


def _done(ledger: Path, seed: int) -> dict[int, Found]:
    lines = [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []
    return {line["batch"]: _found(line["found"]) for line in lines if line["seed"] == seed and not _wrong(line)}


def _wrong(line: dict[str, Any]) -> bool:
    return bool(line["found"]["problems"])


def _found(fields: dict[str, Any]) -> Found:
    return Found(**{name: Counter(value) if isinstance(value, dict) else value for name, value in fields.items()})


def _note(ledger: Path, seed: int, batch: int, found: Found) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    time = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"seed": seed, "batch": batch, "commit": commit.stdout.strip(), "time": time, "found": found.to_dict()}
    with ledger.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())

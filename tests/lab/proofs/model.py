"""Checks a model of the core protocol: steps in any order, with deaths.

    python tests/lab/proofs/model.py --steps 1000000 --seed 1 --resume

Hypothesis draws the steps of one collector, or two (tests/support/stepped). Every 5,000 steps add a ledger line;
``--resume`` counts earlier lines. Exit code 1 for a broken promise, with its shortest path.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.stepped.explored import explore  # noqa: E402

EXAMPLES, LENGTH = 20, 250
_WIDTH = 100_000


def main() -> int:
    options = _options()
    done = _lines(options.ledger, options.seed) if options.resume else []
    total: Counter[str] = Counter()
    for line in done:
        total.update(line["figures"])
    part = len(done)
    logging.disable(logging.CRITICAL)  # sinks and judge log thousands of failures
    while total["steps"] < options.steps:
        began = time.monotonic()
        problems: list[str] = []
        figures: Counter[str] = Counter()
        try:
            figures = explore(EXAMPLES, LENGTH, seed=options.seed * _WIDTH + part)
        except AssertionError as error:
            traceback.print_exc()
            problems.append(str(error))
        _note(options, part, figures, time.monotonic() - began, problems)
        if problems:
            return 1
        total.update(figures)
        part += 1
        if sys.stderr.isatty():
            print(f"\r\033[K{total['steps']}/{options.steps}", end="", file=sys.stderr, flush=True)
    print(json.dumps(dict(sorted(total.items()))))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on behind the lines of this seed in the ledger")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("model-ledger.jsonl"))
    return parser.parse_args()


def _lines(ledger: Path, seed: int) -> list[dict[str, Any]]:
    if not ledger.exists():
        return []
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    return [line for line in lines if line["seed"] == seed and not line["problems"]]


def _note(
    options: argparse.Namespace, part: int, figures: Counter[str], seconds: float, problems: Sequence[str]
) -> None:
    line = {
        "proof": "model",
        "seed": options.seed,
        "part": part,
        "commit": subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "figures": dict(sorted(figures.items())),
        "problems": list(problems),
    }
    with options.ledger.open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    sys.exit(main())

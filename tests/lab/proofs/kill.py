"""Kills a busy collector hundreds of times, and checks that no acknowledged span is lost.

    python tests/lab/proofs/kill.py --cycles 300 --seed 1 --ledger tests/lab/proofs/ledger.jsonl
    python tests/lab/proofs/kill.py --workers 1 --kind workers

Each batch has its own data directory and oracle, and adds a ledger line; interrupted runs resume. Exit code 1 on the
first problem, with the batch's files kept.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.kills import Figures, at_fail_points, at_random_times, of_workers, run  # noqa: E402
from support.ledger import commit, lines, note  # noqa: E402

BATCH = 25
FRESH = 10
"""One batch in this many uses fresh interpreters instead of forks."""
KINDS = ("fail-points", "random-times", "workers")


def main() -> int:
    options = _options()
    total = Figures()
    done = _done(options)
    for number, start in enumerate(range(0, options.cycles, BATCH)):
        if number in done:
            total.add(_figures(done[number]))
            continue
        cycles = min(BATCH, options.cycles - start)
        seed = options.seed * 1000 + number
        kills = _kills(options, cycles, random.Random(seed))
        folder = Path(tempfile.mkdtemp(prefix="pandaeval-kill-"))
        progress = partial(_progress, start, options.cycles)
        figures = run(folder, seed, kills, progress, options.pause, options.workers, number % FRESH == 0)
        _note(options, number, figures)
        total.add(figures)
        if figures.problems:
            print(f"\nWRONG, see {folder}:", *figures.problems, sep="\n  ", file=sys.stderr)
            return 1
        shutil.rmtree(folder)
    print("\r\033[K" if sys.stderr.isatty() else "", end="", file=sys.stderr)
    print(json.dumps(total.to_dict()))
    # If only scoring workers die, the collector writes no result twice.
    if not (total.resent and total.redelivered and (total.rewritten or options.kind == "workers")):
        print("WRONG: nothing was ever sent twice, so the way after a crash was not tried", file=sys.stderr)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="fail-points")
    parser.add_argument("--workers", type=int, default=1, help="processes of the line (line.workers)")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two traces of one of four senders")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("ledger.jsonl"))
    options = parser.parse_args()
    return options


def _kills(options: argparse.Namespace, cycles: int, chance: random.Random) -> list[str]:
    match options.kind:
        case "fail-points":
            return at_fail_points(cycles, chance)
        case "random-times":
            return at_random_times(cycles, chance)
        case _:
            return of_workers(cycles, chance)


def _progress(start: int, cycles: int, text: str) -> None:
    tty = sys.stderr.isatty()
    print(f"\r\033[K{start}+{text} of {cycles}" if tty else f"{start}+{text}", end="" if tty else "\n", file=sys.stderr)


def _done(options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    wanted = {"proof": "kill", "kind": options.kind, "seed": options.seed, "workers": options.workers}
    mine = [line for line in lines(options.ledger) if wanted.items() <= {"workers": 0, **line}.items()]
    return {line["batch"]: line for line in mine if not line["problems"] and line["commit"] == commit()}


def _figures(line: dict[str, Any]) -> Figures:
    figures = Figures()
    for name, value in line.items():
        if name == "points":
            figures.points.update(value)
        elif hasattr(figures, name):
            setattr(figures, name, value)
    return figures


def _note(options: argparse.Namespace, batch: int, figures: Figures) -> None:
    record = {"kind": options.kind, "seed": options.seed, "workers": options.workers, "batch": batch}
    note(options.ledger, "kill", record | figures.to_dict())


if __name__ == "__main__":
    sys.exit(main())

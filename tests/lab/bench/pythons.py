"""Compares the speed of the pipeline under several Python interpreters, in turn.

Each environment needs the collector's dependencies. Prints CPU microseconds per 1 KB span: best, median and ratio.

    python tests/lab/bench/pythons.py [--rounds 5] [--spans 24000] PYTHON [PYTHON ...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from _table import table
from synthetic import SIZES

_ROOT = Path(__file__).parents[3]
_SOURCE = [_ROOT, _ROOT / "collector"]
_LINE = _ROOT / "tests/lab/bench/line.py"
_PHASES = ("accept", "decide")
_NAME = "import platform as p; print(p.python_version(), p.python_compiler())"


def once(packages: Sequence[Path], span_bytes: int, spans: int, python: str) -> dict[str, float]:
    """Return CPU microseconds per span and phase with ``packages``."""
    command = [python, "-P", str(_LINE), "--cpu", str(span_bytes), "--spans", str(spans)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*packages, _LINE.parent]))}
    answer = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def named(python: str) -> str:
    """Return an interpreter's version and compiler."""
    version = subprocess.run([python, "-c", _NAME], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return f"{python}: {version}"


def report(pythons: Sequence[str], rounds: int, spans: int) -> str:
    """Return a row per interpreter."""
    found: dict[str, list[float]] = {python: [] for python in pythons}
    for _ in range(rounds):
        for python, costs in found.items():
            run = once(_SOURCE, SIZES["1 KB"], spans, python)
            costs.append(sum(run[phase] for phase in _PHASES))
    first = min(found[pythons[0]])
    rows = [[named(python), min(costs), median(costs), f"{min(costs) / first:.2f}"] for python, costs in found.items()]
    head = ["interpreter", "best", "median", "x the first"]
    return table(f"CPU microseconds per span by interpreter, {rounds} rounds", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spans", type=int, default=24_000)
    asked = parser.parse_args()
    print(report(list(dict.fromkeys(asked.pythons)), asked.rounds, asked.spans))


if __name__ == "__main__":
    main()

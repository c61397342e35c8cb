"""The line of a compiled build beside that of its own source, turn and turn about, each in processes of its own.

Builds the wheel first, which takes minutes, or takes one that is given. CPU microseconds per span, the best of all
rounds (what else the machine does only adds), and how many times as fast the compiled build is.

    python tests/bench/compiled.py [--wheel FILE] [--rounds 5] [--spans 24000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from _table import table
from synthetic import SIZES

_ROOT = Path(__file__).parents[2]
_LINE = _ROOT / "tests/bench/line.py"
_PHASES = ("accept", "decide")
Costs = dict[str, float]


def build(folder: Path) -> Path:
    """A wheel with compiled modules, of this checkout."""
    environ = {**os.environ, "HATCH_BUILD_HOOKS_ENABLE": "1"}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(_ROOT)]
    begun, used = time.perf_counter(), _children_cpu_s()
    subprocess.run(command, env=environ, check=True)
    (wheel,) = folder.glob("*.whl")
    took, used = time.perf_counter() - begun, _children_cpu_s() - used
    print(f"built in {took:.0f} s ({used:.0f} s of CPU time): {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    return wheel


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unpack(wheel: Path, folder: Path) -> dict[str, Path]:
    """Two folders to import from: all of the wheel, and its sources alone."""
    for name in ("pure", "compiled"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / name)
    libraries = [*(folder / "pure").rglob("*.so"), *(folder / "pure").rglob("*.pyd")]
    if not libraries:
        sys.exit(f"{wheel} holds no compiled modules: build it with HATCH_BUILD_HOOKS_ENABLE=1")
    for library in libraries:
        library.unlink()
    return {name: folder / name for name in ("pure", "compiled")}


def once(packages: Sequence[Path], span_bytes: int, spans: int, python: str = sys.executable) -> Costs:
    """CPU microseconds per span and phase, of the collector in ``packages``."""
    command = [python, "-P", str(_LINE), "--cpu", str(span_bytes), "--spans", str(spans)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*packages, _LINE.parent]))}
    answer = subprocess.run(command, env=environ, check=True, stdout=subprocess.PIPE, text=True)
    found: Costs = json.loads(answer.stdout)
    return found


def report(builds: dict[str, Path], rounds: int, spans: int) -> str:
    """The table for both sizes."""
    rows: list[list[object]] = []
    for size, span_bytes in SIZES.items():
        found: dict[str, list[Costs]] = {name: [] for name in builds}
        for _ in range(rounds):
            for name, packages in builds.items():
                found[name].append(once([packages], span_bytes, spans))
        best = {name: {phase: _best(each, [phase]) for phase in _PHASES} for name, each in found.items()}
        rows.extend(_row(size, phase, best["pure"][phase], best["compiled"][phase]) for phase in _PHASES)
        rows.append(_row(size, "**both**", _best(found["pure"], _PHASES), _best(found["compiled"], _PHASES)))
    head = ["size", "phase", "Python alone", "compiled", "times as fast"]
    return table(f"CPU microseconds per span, best of {rounds} rounds", head, rows)


def _best(runs: Iterable[Costs], phases: Iterable[str]) -> float:
    names = list(phases)
    return min(sum(run[name] for name in names) for run in runs)


def _row(size: str, phase: str, pure: float, compiled: float) -> list[object]:
    return [size, phase, pure, compiled, f"{pure / compiled:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spans", type=int, default=24_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        wheel = asked.wheel or build(Path(made))
        print(report(unpack(wheel, Path(made)), asked.rounds, asked.spans))


if __name__ == "__main__":
    main()

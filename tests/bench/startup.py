"""From the start of the process to ``/readyz`` saying yes, with an empty store and with open traces to resume.

    python tests/bench/startup.py [--runs 7] [--data DIR]

``--data``: a folder with a collector's ``data`` directory, such as one that ``flat.py`` filled, instead of those two.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

from _load import Load, send
from _server import collector
from _table import table
from accept import OPEN
from synthetic import SIZES, SPANS_PER_TRACE


def once(folder: Path) -> tuple[float, float]:
    """Seconds by the clock, and of CPU time."""
    with collector(folder, OPEN) as server:
        return server.wait_ready(pause_s=0.005), server.cpu_s()


def of_folder(folder: Path, runs: int) -> str:
    size = sum(file.stat().st_size for file in (folder / "data").iterdir())
    return _shown(runs, {f"{size / 1e9:.1f} GB": [once(folder) for _ in range(runs)]})


def report(runs: int, open_traces: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        empty = [once(Path(folder)) for _ in range(runs)]
        with collector(Path(folder), OPEN) as server:
            server.wait_ready()
            send(server.address, Load(open_traces * SPANS_PER_TRACE, SIZES["1 KB"]))
        resumed = [once(Path(folder)) for _ in range(max(1, runs // 2))]
    return _shown(runs, {"empty store": empty, f"{open_traces:,} open traces of 12 spans": resumed})


def _shown(runs: int, measured: dict[str, list[tuple[float, float]]]) -> str:
    rows = [
        [what, median(wall for wall, _ in found), max(wall for wall, _ in found), median(cpu for _, cpu in found)]
        for what, found in measured.items()
    ]
    return table(f"Ready after, s, {runs} runs", ["store", "median", "worst", "CPU s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--traces", type=int, default=10_000)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    print(of_folder(asked.data, asked.runs) if asked.data else report(asked.runs, asked.traces))


if __name__ == "__main__":
    main()

"""All benchmarks of the collector, one table after the other.

python tests/bench/run.py [--quick]
"""

from __future__ import annotations

import argparse
import platform
import sqlite3
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import accept
import flat
import latency
import line
import memory
import startup


def machine() -> str:
    """What the figures were measured on."""
    processor = next(
        text.split(":", 1)[1].strip() for text in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in text
    )
    libraries = ", ".join(f"{name} {version(name)}" for name in ("grpcio", "protobuf", "numpy", "zstandard", "uvloop"))
    load = Path("/proc/loadavg").read_text().split()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {processor}, Linux {platform.release()}, {_system()}, "
        f"Python {platform.python_version()} ({platform.python_compiler()}), "
        f"SQLite {sqlite3.sqlite_version}, {libraries}; load average {load} before"
    )


def _system() -> str:
    return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small and once: minutes instead of an hour")
    quick = parser.parse_args().quick
    rounds, spans = (1, 60_000) if quick else (5, 240_000)
    print(machine(), flush=True)
    print(line.report(24_000 if quick else 120_000), flush=True)
    print(startup.report(3 if quick else 7, 1_000 if quick else 10_000), flush=True)
    print(memory.report(2_000 if quick else 10_000), flush=True)
    print(accept.accept(accept.CASES, rounds, spans), flush=True)
    print(accept.sustained(5 if quick else 15), flush=True)
    print(accept.whole(accept.LINE_CASES, rounds, spans // 2), flush=True)
    print(accept.whole(accept.LINE_CASES, rounds, spans // 2, core=None), flush=True)
    print(latency.report(5_000, 10 if quick else 30), flush=True)
    print(flat.report(3_000 if quick else 100_000), flush=True)


if __name__ == "__main__":
    main()

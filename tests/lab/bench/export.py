"""Measures the memory of ``pandaeval export``: the peak of the process, by format and number of traces.

python tests/lab/bench/export.py [--traces 500,50000]
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _table import table
from synthetic import request

from pandaeval_collector.store import Store, packed_contents
from pandaeval_collector.store.connection import FILE_NAME

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.many_traces import fill

_FORMATS = ("json", "csv", "otlp")
_PROGRAM = str(Path(sys.executable).with_name("pandaeval"))


def made(folder: Path, traces: int) -> None:
    """Fill a store with traces of twelve spans of 1 KB each."""
    store = Store(folder, "off", max_bytes=1 << 40)
    fill(store, traces)
    store.close()
    data = packed_contents([(False, request(1, 1))])
    with sqlite3.connect(folder / FILE_NAME) as database:
        database.execute(
            "INSERT OR REPLACE INTO kept (no, kept_at, size, data) SELECT no, 0, ?, ? FROM traces", (len(data), data)
        )
    database.close()


def exported(folder: Path, format_: str) -> list[object]:
    """Export a store; return the peak memory of the command, the size of its output, and its seconds."""
    output = folder / "output"
    began = time.monotonic()
    process = subprocess.Popen(
        [_PROGRAM, "export", "--store", str(folder), "--format", format_, "--output", str(output)]
    )
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, status
    return [usage.ru_maxrss * 1024 / 1e6, output.stat().st_size / 1e6, time.monotonic() - began]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", default="500,50000")
    asked = parser.parse_args()
    rows: list[list[object]] = []
    for traces in (int(each) for each in asked.traces.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            made(Path(folder), traces)
            rows += [[format_, traces, *exported(Path(folder), format_)] for format_ in _FORMATS]
    print(table("Memory of an export", ["format", "traces", "peak MB", "file MB", "seconds"], rows))


if __name__ == "__main__":
    main()

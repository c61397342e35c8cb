"""The results file after a power cut."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from support.power_cuts import Disk, compiled, logged, steps

_WRITER = """
import asyncio, sys
from pathlib import Path
from types import SimpleNamespace
from pandaeval_collector.exporters.jsonl import JsonlExporter

async def main():
    exporter = JsonlExporter(Path(sys.argv[1]))
    await exporter.open("")
    for number in (1, 2):
        sent = await exporter.export([SimpleNamespace(seq=number, body=b'{"id": %d}' % number)])
    print(sent.position, end="")

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler")
def test_exported_lines_survive_a_power_cut(tmp_path: Path) -> None:
    folder, log = tmp_path / "of results", tmp_path / "disk.rec"
    folder.mkdir()
    file, environment = folder / "results.jsonl", environ | logged(compiled(tmp_path), log, folder)
    command = [sys.executable, "-c", _WRITER, str(file)]
    completed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    disk = Disk()
    for step in steps(log):
        disk.do(step)
    for seed in range(50):
        left = disk.after_a_cut(random.Random(seed))[str(file)]
        assert (left, len(left)) == (b'{"id": 1}\n{"id": 2}\n', int(completed.stdout))

"""Measures traces per second and memory of an evaluation run.

    python tests/lab/bench/runs.py --traces 20000

Runs a model-free metric over small traces; prints memory after each tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from pandaeval_collector.analysis.embedding import load  # noqa: E402
from pandaeval_collector.runs.spec import RunSpec  # noqa: E402
from pandaeval_collector.store import Store  # noqa: E402
from support.evaluation_runs import evaluation_runs  # noqa: E402
from support.line import RunningPipeline  # noqa: E402
from support.made_traces import Composer  # noqa: E402

_AT_ONCE = 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(Path(folder), options.traces))


async def _run(folder: Path, traces: int) -> None:
    await _fill(folder, traces)
    store = Store(folder, "off")
    runs = evaluation_runs(store)
    await runs.start()
    try:
        began, shown = time.monotonic(), 0
        run = await runs.submit(RunSpec(("trace.coherence", "trace.tool_loop")))
        while not run.ended:
            await asyncio.sleep(0.5)
            found = store.runs.find(run.id)
            assert found is not None
            run = found
            if run.total and run.done >= shown * traces / 10:
                shown = run.done * 10 // traces + 1
                print(f"{run.done:>8} traces  {_child_kb() / 1024:>8.1f} MiB", flush=True)
        seconds = time.monotonic() - began
        print(f"{run.done} of {run.total} traces in {seconds:.0f} s: {run.done / seconds:.0f} a second", flush=True)
    finally:
        await runs.stop()
        store.close()


async def _fill(folder: Path, traces: int) -> None:
    async with RunningPipeline(folder, embedder=load("embedded")) as line:
        composer = Composer(1)
        for start in range(0, traces, _AT_ONCE):
            await asyncio.gather(*(line.send(composer.trace()) for _ in range(min(_AT_ONCE, traces - start))))
            await line.wait(20)
        await line.settle()


def _child_kb() -> int:
    """Return the run process's memory in kB."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    every = [child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]
    sizes = [0]
    for child in {*children, *every}:
        status = Path(f"/proc/{child}/status").read_text()
        sizes += [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")]
    return max(sizes)


if __name__ == "__main__":
    main()

"""What the owner of sessions pays for a trace that another collector decided, beside what deciding it costs.

Two lines in this process, on stores of their own: one decides traces and hands them over, the other makes them members
of their sessions and compares them. CPU time of the whole process for each step; rounds in turn, medians.

    python tests/bench/members.py [--traces 1500] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from _table import table

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.exporters.delivery import MEMBERS
from support.line import RunningLine
from support.made_traces import Composer

_QUIET_S = 11.0
_AT_ONCE = 256


async def measure(seed: int, number: int) -> tuple[float, float, float]:
    """Milliseconds of CPU time for deciding a trace and for owning one, and bytes of what is handed over of it.
    Traces that belong to no session are decided and not handed over."""
    composer, embedder = Composer(seed), load("embedded")
    traces = [composer.trace() for _ in range(number)]
    with tempfile.TemporaryDirectory() as folder:
        async with (
            RunningLine(Path(folder, "forwarder"), embedder=embedder, sessions="elsewhere") as forwarder,
            RunningLine(Path(folder, "owner"), embedder=embedder) as owner,
        ):
            for trace in traces:
                await forwarder.send(trace)
            began = time.process_time()
            while forwarder.pipeline.open_traces:
                await forwarder.wait(_QUIET_S)
            decided = time.process_time() - began
            members: list[bytes] = []
            seq = 0
            while rows := forwarder.store.reads.outbox_after(MEMBERS, seq):
                members += [row.body for row in rows]
                seq = rows[-1].seq
            began = time.process_time()
            for at in range(0, len(members), _AT_ONCE):
                await owner.pipeline.take_members(members[at : at + _AT_ONCE])
                await owner.wait(0.0)
            owned = time.process_time() - began
    return decided * 1e3 / number, owned * 1e3 / len(members), statistics.mean(map(len, members))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    found = [asyncio.run(measure(seed, asked.traces)) for seed in range(1, asked.rounds + 1)]
    decided, owned, size = (statistics.median(each) for each in zip(*found, strict=True))
    ratios = sorted(each[1] / each[0] for each in found)
    print(
        table(
            "A member of a session",
            ("deciding a trace, ms", "owning it, ms", "ratio", "of the rounds", "bytes handed over"),
            [(decided, owned, statistics.median(ratios), f"{ratios[0]:.2f} to {ratios[-1]:.2f}", size)],
        )
    )


if __name__ == "__main__":
    main()

"""Compares the collector with other systems under the same load.

Each system has one core; the sender has the other. It gets ten seconds of load and forty seconds to finish. CPU time
includes all child processes. The table also shows durability, trace assembly and scoring.

    python tests/lab/bench/compare.py --install     # installs missing systems into ~/.cache/pandaeval; runs
    python tests/lab/bench/compare.py [--rounds 3] [--only phoenix]
    python tests/lab/bench/compare.py --page        # writes the newest runs into docs/internals/performance.md

Appends a line per size to ``compare.jsonl``. Unavailable systems are listed with the reason.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from _load import Load, send
from _page import stamp, write
from _peers import Peer, peers
from _server import Server
from _table import table
from synthetic import SIZES, SPANS_PER_TRACE

LEDGER = Path(__file__).with_name("compare.jsonl")
MARK = "others: python tests/lab/bench/compare.py"
_SPANS = {"1 KB": 120_000, "5 KB": 30_000}
_LOAD_S, _SETTLE_S = 10.0, 40.0
_LEAST_S = 4.0
"""Longer than any system waits: agentevals waits 3 s after the root."""
_IDLE = 0.1
"""Of a core."""
Line = Mapping[str, Any]


def measure(peer: Peer, size: str, seconds: float) -> dict[str, Any]:
    """Measure one size on a fresh server."""
    load = Load(_SPANS[size], SIZES[size], callers=8, connections=4, seconds=seconds)
    with tempfile.TemporaryDirectory() as folder, peer.start(Path(folder)) as server:
        server.wait_ready(pause_s=0.1)
        send(server.address, Load(load.traces * SPANS_PER_TRACE * 10, load.span_bytes, first=10**9, seconds=seconds))
        _settle(server)
        before = server.cpu_s()
        sent = send(server.address, load)
        answered, settled_s = server.cpu_s() - before, _settle(server)
        used = server.cpu_s() - before
        rss = sum(server.memory("VmHWM", pid) for pid in (server.process.pid, *server.children()))
    return {
        "spans": sent.spans,
        "rejected": sent.rejected,
        "refused": sent.refused,
        "spans_s": sent.rate,
        "p50_ms": sent.p50_ms,
        "p99_ms": sent.p99_ms,
        "answered_cpu_s": answered,
        "cpu_s": used,
        "settled_s": settled_s,
        "rss_mb": rss / 1e6,
        "sender_busy": sent.cpu_s / sent.wall_s,
    }


def _settle(server: Server) -> float | None:
    """Return the seconds until idle, or ``None``."""
    begun, used = time.monotonic(), server.wanted_s()
    while (since := time.monotonic() - begun) < _SETTLE_S:
        time.sleep(1.0)
        before, used = used, server.wanted_s()
        if used - before < _IDLE and since + 1 >= _LEAST_S:
            return since
    return None


def run(chosen: Sequence[Peer], rounds: int, seconds: float, install: bool, ledger: Path) -> None:
    """Run all systems in turn; append to the ledger."""
    stamped, missing = stamp(), {}
    for peer in chosen:
        if peer.package is not None and (why := peer.package.install() if install else peer.package.missing()):
            missing[peer.name] = f"`{peer.package.command}`: {why}"
            _append(ledger, {**stamped, "system": peer.name, "missing": missing[peer.name]})
    for number in range(rounds):
        for peer in chosen:
            if peer.name in missing:
                continue
            version = peer.package.found_version() if peer.package else ""
            for size in SIZES:
                print(f"round {number + 1}: {peer.name}, {size}", file=sys.stderr, flush=True)
                line = {**stamped, "system": peer.name, "version": version, "size": size}
                try:
                    figures = measure(peer, size, seconds)
                except (OSError, RuntimeError) as error:
                    figures = {"failed": str(error).splitlines()[0][:200]}
                _append(ledger, {**line, **figures})


def _append(ledger: Path, line: Line) -> None:
    with ledger.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def newest(ledger: Path) -> list[Line]:
    """Return each system's last run."""
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    last = {line["system"]: line["time"] for line in lines}
    return [line for line in lines if line["time"] == last[line["system"]]]


def report(lines: Sequence[Line]) -> str:
    """Return the systems and a table per size."""
    system_rows = []
    for peer in peers():
        mine = [line for line in lines if line["system"] == peer.name]
        versions = {line["version"] for line in mine if line.get("version")}
        installed = f"`{peer.package.command}`" if peer.package else "`pip install . ./collector`"
        why = next((f"**not installed here, because** {line['missing']}" for line in mine if "missing" in line), "")
        state = why or " ".join([installed, *versions]) if mine else "not run"
        system_rows.append([peer.name, state, peer.durable, peer.assembled, peer.scored])
    head = ["system", "installed by", "on disk before the answer", "assembles traces", "scores"]
    found = [table("Systems and their tasks", head, system_rows)]
    for size in SIZES:
        rows = [_row(peer.name, [line for line in lines if _has(line, peer, size)]) for peer in peers()]
        found.append(table(f"Spans of {size}, 120 spans per request, one core", _FIGURES, [row for row in rows if row]))
    last = lines[-1]
    when = (
        f"Measured until {last['time']} at {last['commit']}, on {last['machine']}; load average {last['load']} before."
    )
    return "\n".join([*found, "", when])


_FIGURES = [
    "system",
    "answered spans/s",
    "p50 ms",
    "p99 ms",
    "CPU µs a span until answered",
    "CPU µs a span until all work is done",
    "spans/s a core",
    "all work done after",
    "peak memory, MB",
    "refused or rejected",
    "sender, share of time busy",
]


def _has(line: Line, peer: Peer, size: str) -> bool:
    return line["system"] == peer.name and line.get("size") == size


def _row(name: str, lines: Sequence[Line]) -> list[object]:
    if failed := [line["failed"] for line in lines if "failed" in line]:
        return [name, f"failed: {failed[0]}", *[""] * (len(_FIGURES) - 2)]
    if not lines:
        return []
    kept = median(line["spans"] - line["rejected"] for line in lines)
    if not kept:
        return [name, "took nothing", *[""] * (len(_FIGURES) - 2)]
    costs = [1e6 * line["cpu_s"] / (line["spans"] - line["rejected"]) for line in lines]
    late = None in (settled := [line["settled_s"] for line in lines])
    return [
        name,
        median(line["spans_s"] for line in lines),
        median(line["p50_ms"] for line in lines),
        median(line["p99_ms"] for line in lines),
        median(1e6 * line["answered_cpu_s"] / line["spans"] for line in lines),
        f"> {median(costs):.0f}" if late else median(costs),
        f"< {1e6 / median(costs):,.0f}" if late else 1e6 / median(costs),
        f"not in {_SETTLE_S:.0f} s" if late else f"{median(settled):.0f} s",
        median(line["rss_mb"] for line in lines),
        _not_taken(lines),
        f"{median(line['sender_busy'] for line in lines):.0%}",
    ]


def _not_taken(lines: Sequence[Line]) -> str:
    refused, rejected = (sum(line[what] for line in lines) for what in ("refused", "rejected"))
    parts = [f"{refused:,} requests refused"] if refused else []
    return ", ".join([*parts, *([f"{rejected:,} spans rejected"] if rejected else [])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="what is missing, from its registry")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=_LOAD_S, help="of load at most, a system and size")
    parser.add_argument("--only", default="", help="systems whose name has this text")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--page", action="store_true", help="write the newest run into the page, and leave")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the exit stops the system under test
    if not asked.page:
        chosen = [peer for peer in peers() if asked.only.lower() in peer.name.lower()]
        run(chosen, asked.rounds, asked.seconds, asked.install, asked.ledger)
    shown = report(newest(asked.ledger))
    print(shown)
    if asked.page:
        write(MARK, shown)


if __name__ == "__main__":
    main()

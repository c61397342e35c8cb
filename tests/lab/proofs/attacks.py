"""Attacks a collector beside normal traffic, at scale 1 and 10.

    python tests/lab/proofs/attacks.py                          # all of it, about half an hour on two cores
    python tests/lab/proofs/attacks.py --only "bombs" --scale 1

Normal traffic's 99th percentile must stay within a second, and memory within 512 MB. Refusals must be clear, and all
acknowledged spans decided. Each attack adds a ledger line. `--table` writes them into
docs/internals/reliability-tests.md. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess, DiedError  # noqa: E402
from support.hostile.alone import ALONE  # noqa: E402
from support.hostile.attack import UNCLEAR, Ground, Target, attacks, strike  # noqa: E402
from support.hostile.beside import Memory, NormalTraffic, Seen  # noqa: E402
from support.hostile.beside_figures import percentile  # noqa: E402
from support.hostile.table import with_table  # noqa: E402

P99_S, RSS_BYTES = 1.0, 512 << 20
_CALM_S, _START_S = 5.0, 1800.0


def main() -> int:
    options = _options()
    if options.table:
        page = ROOT / "docs/internals/reliability-tests.md"
        lines = map(json.loads, options.ledger.read_text().splitlines())
        page.write_text(with_table(page.read_text(), lines, [*attacks(), *ALONE]))
        return 0
    problems: list[str] = []
    for scale in options.scale:
        grounds: dict[str, list[str]] = {}
        for name, known in attacks().items():
            if not options.only or name in options.only:
                grounds.setdefault(known.ground.name, []).append(name)
        for names in grounds.values():
            problems += _on_one_collector(options, names, scale)
        for name, attack in ALONE.items():
            if not options.only or name in options.only:
                problems += _alone(options, name, attack, scale)
    print(*problems or ["nothing was wrong"], sep="\n")
    return 1 if problems else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*attacks(), *ALONE]
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help=f"one of: {', '.join(known)}")
    parser.add_argument("--scale", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="write docs/internals/reliability-tests.md, and leave")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("attacks-ledger.jsonl"))
    return parser.parse_args()


def _on_one_collector(options: argparse.Namespace, names: Sequence[str], scale: int) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-attacks-"))
    ground = attacks()[names[0]].ground
    problems: list[str] = []
    acknowledged: set[bytes] = set()
    try:
        with _collector(ground, folder, scale) as collector:
            collector.launch()
            collector.until(collector.ready, "ready", _START_S)
            authority = folder / ground.authority if ground.authority else None
            with NormalTraffic(collector, options.seed, authority=authority) as traffic:
                calm = _after(traffic, _CALM_S)
                for name in names:
                    wrong, seen = _one(options, collector, traffic, calm, name, scale)
                    problems += wrong
                    acknowledged |= seen.traces.keys() | calm.traces.keys()
                    if not collector.running():
                        raise DiedError(f"{name} ended the collector with {collector.exit_code()}:\n{collector.log()}")
                    calm = _after(traffic, _CALM_S)
            acknowledged |= calm.traces.keys() | traffic.take().traces.keys()
            problems += _last_word(collector, acknowledged)
    except DiedError as error:
        problems.append(str(error))
    if problems:
        print(f"see {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return problems


def _collector(ground: Ground, folder: Path, scale: int) -> CollectorProcess:
    prepared = ground.prepare(folder, scale) if ground.prepare else {}
    return CollectorProcess(folder, {**ground.settings, **prepared})


def _after(traffic: NormalTraffic, seconds: float) -> Seen:
    """Return the normal traffic of the next seconds."""
    traffic.take()
    time.sleep(seconds)
    return traffic.take()


def _one(
    options: argparse.Namespace, collector: CollectorProcess, traffic: NormalTraffic, calm: Seen, name: str, scale: int
) -> tuple[list[str], Seen]:
    """Run an attack and observe its aftermath. ``calm``: traffic before."""
    assert collector.process is not None
    pid = collector.process.pid
    http, health = (f"127.0.0.1:{port}" for port in (collector.http_port, collector.health_port))
    target = Target(collector.grpc, http, health, pid, collector.folder)
    began = time.monotonic()
    with Memory(pid) as memory:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            answers = pool.submit(strike, name, target, scale).result()
        took = time.monotonic() - began
        held = traffic.take() if attacks()[name].holds else Seen()
        time.sleep(_CALM_S)
    seen = traffic.take()
    p99, before = percentile(seen.latencies_s, 0.99), percentile(calm.latencies_s, 0.99)
    wrong = [f"{count} x {answer!r}" for answer, count in answers.items() if answer in UNCLEAR]
    wrong += [f"normal traffic was refused: {each}" for each in [*held.refused, *seen.refused][:3]]
    if p99 is None or p99 > P99_S:
        wrong.append(f"the 99th percentile of normal traffic was {p99} s")
    if memory.peak > RSS_BYTES:
        wrong.append(f"it took {memory.peak >> 20} MiB")
    _note(
        options,
        attack=name,
        scale=scale,
        seconds=round(took, 1),
        answers=dict(answers),
        normal={"requests": len(seen.latencies_s), "p50_s": _round(statistics.median(seen.latencies_s or [0])),
                "p99_s": _round(p99), "max_s": _round(max(seen.latencies_s, default=None)),
                "tried_again": sum(n for answer, n in seen.answers.items() if answer != "acknowledged")},
        before={"requests": len(calm.latencies_s), "p99_s": _round(before)},
        p99_ratio=round(p99 / before, 1) if p99 and before else None,
        health_max_s=_round(max(seen.health_s, default=None)),
        scrape_max_s=_round(max(seen.scrape_s, default=None)),
        peak_mib=memory.peak >> 20,
        children_mib=memory.children >> 20,
        load=round(os.getloadavg()[0], 1),
        problems=wrong,
    )  # fmt: skip
    seen.traces |= held.traces
    return [f"{name} x {scale}: {each}" for each in wrong], seen


def _last_word(collector: CollectorProcess, acknowledged: set[bytes]) -> list[str]:
    problems = []
    collector.until(lambda: collector.gauge("traces_open") == 0, "done", 600)
    if residual := collector.gauge("accounting_residual"):
        problems.append(f"{residual:.0f} spans are in none of the books")
    with collector.database() as database:
        decided = {row[0] for row in database.execute("SELECT trace_id FROM traces")}
    if lost := acknowledged - decided:
        problems.append(f"{len(lost)} of {len(acknowledged)} acknowledged traces are not decided")
    if (code := collector.stop()) != 0:
        problems.append(f"SIGTERM ended it with {code}")
    return problems


def _alone(options: argparse.Namespace, name: str, attack: Any, scale: int) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-attacks-"))
    began = time.monotonic()
    wrong = [*attack(folder, scale)]
    _note(options, attack=name, scale=scale, seconds=round(time.monotonic() - began, 1), problems=wrong)
    if wrong:
        print(f"see {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return [f"{name} x {scale}: {each}" for each in wrong]


def _note(options: argparse.Namespace, **figures: Any) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    line = {"proof": "attacks", "commit": commit.stdout.strip(), "time": datetime.now(UTC).isoformat("T", "seconds")}
    with options.ledger.open("a") as ledger:
        ledger.write(json.dumps(line | figures) + "\n")
    print(json.dumps(figures), flush=True)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


if __name__ == "__main__":
    sys.exit(main())

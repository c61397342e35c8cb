"""Runs a collector for hours with judged traffic and readers, and measures its resources.

    python tests/lab/proofs/soak.py --hours 2 --rate 2 --seed 1
    python tests/lab/proofs/soak.py --hours 2 --hostile 1    # beside it one random hostile trace a second

Samples memory, descriptors and threads every 15 seconds. After 20 minutes, memory may grow by 2 MB per hour at most.
Adds a ledger line, also after SIGTERM or Ctrl-C; ``--samples`` writes the samples. Exit code 1 for growth or a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess, children_of  # noqa: E402
from support.good_judge import good_judge, judged_by  # noqa: E402
from support.hostile.random_traces import HostileTraces  # noqa: E402
from support.judge import JudgeServer  # noqa: E402
from support.ledger import note  # noqa: E402
from support.made_traces import Composer  # noqa: E402
from support.senders import GrpcSender, HttpSender, Request, SpanSender, SubmitSender  # noqa: E402
from support.slope import slope_an_hour  # noqa: E402

MOST_MB_AN_HOUR, WARM_S, SAMPLE_S = 2.0, 1200.0, 15.0
_PAGES = ("overview", "traces?limit=50", "sessions?limit=50", "results?limit=50", "incidents", "annotations", "metrics")


def main() -> int:
    options = _options()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-soak-"))
    counts: Counter[str] = Counter()
    with good_judge() as provider, CollectorProcess(folder, _settings(provider), fresh=True) as collector:
        collector.start()
        stopping = threading.Event()
        users = [threading.Thread(target=each) for each in _users(collector, options, counts, stopping)]
        for user in users:
            user.start()
        samples = _watched(collector, options, ended, provider)
        stopping.set()
        for user in users:
            user.join()
        counts |= {f"line: {' '.join(key)}": number for key, number in _of_line(collector).items()}
        alone = collector.exit_code()
        code = collector.stop() if alone is None else alone
    found = _found(samples, counts, code)
    _note(options, found)
    if found["problems"]:
        print(f"see {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=2.0, help="traces a second")
    parser.add_argument("--hostile", type=float, default=0.0, help="hostile traces a second beside them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=Path, help="a file to which each sample is added")
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("soak-ledger.jsonl"))
    return parser.parse_args()


def _settings(provider: JudgeServer) -> dict[str, str]:
    times = {"STORE__RETENTION": "10m", "SESSION__IDLE": "30s", "CLOSE__QUIET": "2s", "CLOSE__IDLE": "5s"}
    return judged_by(provider, 0.05) | {f"PANDAEVAL_{name}": value for name, value in times.items()}


# -- senders and readers ---------------------------------------------------------------------------------------------


def _users(
    collector: CollectorProcess, options: argparse.Namespace, counts: Counter[str], stopping: threading.Event
) -> list[Callable[[], None]]:
    """Return a sender per receiver, and a reader."""
    doors = (GrpcSender(collector.grpc), HttpSender(collector.http), SubmitSender(collector.grpc))
    pause_s = len(doors) / options.rate

    def sender(number: int, door: SpanSender) -> Callable[[], None]:
        composer = Composer(options.seed * 1000 + number)
        return lambda: _send(door, lambda: composer.trace().request(), pause_s, counts, stopping)

    read, hostile = _Reader(collector, options.seed, counts), HostileTraces(options.seed)
    users = [*(sender(*each) for each in enumerate(doors)), lambda: read.run(stopping)]
    if options.hostile:
        door, pause = HttpSender(collector.http), 1 / options.hostile
        users.append(lambda: _send(door, lambda: hostile.request()[1], pause, counts, stopping, "hostile: "))
    return users


def _send(
    door: SpanSender,
    make: Callable[[], Request],
    pause_s: float,
    counts: Counter[str],
    stopping: threading.Event,
    of: str = "",
) -> None:
    with contextlib.closing(door):
        while not stopping.wait(pause_s):
            answer = door.send(make())
            outcome = "acknowledged" if answer.acknowledged else f"not acknowledged: {answer.message}{answer.refused}"
            counts[f"{of}{outcome}"] += 1


class _Reader:
    """Reads pages, details and metrics in turn."""

    def __init__(self, collector: CollectorProcess, seed: int, counts: Counter[str]) -> None:
        self._api = f"{collector.http}/api/v1/"
        self._scraped = f"http://127.0.0.1:{collector.health_port}/metrics"
        self._chance, self._told = random.Random(seed), counts
        self._known: dict[str, list[str]] = {"traces": [], "sessions": []}

    def run(self, stopping: threading.Event) -> None:
        while not stopping.wait(1.0):
            for path in (*_PAGES, *self._details()):
                self._read(self._api + path, path.partition("?")[0])
                if stopping.wait(1.0):
                    return
            self._read(self._scraped, "scrape")

    def _details(self) -> list[str]:
        return [f"{kind}/{quote(self._chance.choice(ids), safe='')}" for kind, ids in self._known.items() if ids]

    def _read(self, address: str, page: str) -> None:
        try:
            with urllib.request.urlopen(address, timeout=60) as response:
                body = response.read()
            self._told["read"] += 1
            if page in self._known:
                named = {"traces": "trace_id", "sessions": "session_id"}[page]
                self._known[page] = [item[named] for item in json.loads(body)["items"] if item[named]]
        except urllib.error.HTTPError as error:  # a listed item may have been deleted
            self._told[f"HTTP {error.code}"] += 1
        except OSError as error:
            self._told[f"no answer: {error!r}"] += 1


# -- measurements ----------------------------------------------------------------------------------------------------


def _watched(
    collector: CollectorProcess, options: argparse.Namespace, ended: threading.Event, provider: JudgeServer
) -> list[dict[str, float]]:
    began = time.monotonic()
    samples: list[dict[str, float]] = []
    while (passed := time.monotonic() - began) < options.hours * 3600 and collector.running():
        sample = {"s": round(passed, 1), **_sample(collector)}
        samples.append(sample)
        if options.samples:
            with options.samples.open("a") as file:
                file.write(json.dumps(sample) + "\n")
        end = "\r" if sys.stderr.isatty() else "\n"
        if sys.stderr.isatty() or len(samples) % 20 == 1:
            print(f"{passed / 60:.0f} of {options.hours * 60:.0f} min: {sample}", end=end, file=sys.stderr, flush=True)
        provider.requests.clear()
        if ended.wait(SAMPLE_S):
            break
    return samples


def _sample(collector: CollectorProcess) -> dict[str, float]:
    assert collector.process is not None
    pid = collector.process.pid
    found = {"rss_mb": _rss_mb(pid), "fds": len(list(Path(f"/proc/{pid}/fd").iterdir()))}
    found["threads"] = len(list(Path(f"/proc/{pid}/task").iterdir()))
    for name, module in (("judge", b"judge.worker"), ("reader", b"reader_main"), ("line", b"line.main")):
        found[f"{name}_rss_mb"] = round(sum(_rss_mb(child) for child in children_of(collector, module)), 2)
    found["store_mb"] = round(sum(file.stat().st_size for file in collector.data.glob("pandaeval.db*")) / 1e6, 2)
    return found


def _rss_mb(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) * 1024 / 1e6, 2)
    return 0.0


def _of_line(collector: CollectorProcess) -> dict[tuple[str, str], int]:
    with contextlib.suppress(OSError):
        counts = collector.counts()
        kept = (("workers", "ended"), ("traces", "failed"), ("traces", "decided"))
        return {(f"{name}_{outcome}", why): n for (name, outcome, why), n in counts.items() if (name, outcome) in kept}
    return {}


def _found(samples: Sequence[dict[str, float]], counts: Counter[str], code: int) -> dict[str, Any]:
    warm = [sample for sample in samples if sample["s"] >= WARM_S]
    ends = {name: [samples[0][name], samples[-1][name]] for name in ("rss_mb", "line_rss_mb", "reader_rss_mb")}
    found: dict[str, Any] = {"minutes": round(samples[-1]["s"] / 60, 1), "samples": len(samples), "told": dict(counts)}
    found["first_and_last"] = ends
    problems = [f"it ended with {code}"] * (code != 0)
    problems += [f"{count} x {what}" for what, count in counts.items() if what.startswith(("no answer", "HTTP 5"))]
    if len(warm) >= 20:
        for name in ("rss_mb", "judge_rss_mb", "fds", "threads", "store_mb"):
            values = [sample[name] for sample in warm]
            first, last = statistics.median(values[:20]), statistics.median(values[-20:])
            slope = slope_an_hour([(sample["s"], sample[name]) for sample in warm])
            found[name] = {"first": first, "last": last, "least": min(values), "most": max(values)}
            found[name]["an_hour"] = round(slope, 3)
        if found["rss_mb"]["an_hour"] > MOST_MB_AN_HOUR:
            problems.append(f"memory grew by {found['rss_mb']['an_hour']} MB an hour")
    return {**found, "problems": problems}


def _note(options: argparse.Namespace, found: dict[str, Any]) -> None:
    line = {"hours": options.hours, "rate": options.rate, "hostile": options.hostile, "seed": options.seed, **found}
    print(json.dumps(note(options.ledger, "soak", line)))


if __name__ == "__main__":
    sys.exit(main())

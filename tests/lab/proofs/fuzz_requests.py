"""Sends randomly corrupted requests to a running collector.

    python tests/lab/proofs/fuzz_requests.py --requests 1000000 --seed 1

Three quarters are OTLP and span processor requests, the rest API, page and MCP. Every 20,000 requests use a new store
and add a ledger line; interrupted runs resume. Exit code 1 for a missing answer, a 5xx except 503, a crash or
unaccounted spans.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess  # noqa: E402
from support.hostile.beside import Memory  # noqa: E402
from support.hostile.doors import Channel, call_status  # noqa: E402
from support.hostile.fuzz import Fuzzer, post_all  # noqa: E402
from support.hostile.fuzz_readers import ReaderFuzzer  # noqa: E402
from support.ledger import commit  # noqa: E402

PART, VOLLEY = 20_000, 500
READERS = 0.25
"""Share of requests to API, page and MCP."""
WRONG = frozenset({"HTTP 0", "HTTP 500", "HTTP 502", "HTTP 504", "no answer", "gRPC INTERNAL", "gRPC UNKNOWN"})


def main() -> int:
    options = _options()
    parts = -(-options.requests // PART)
    done = _done(options)
    total: Counter[str] = Counter()
    for part in range(parts):
        line = done.get(part) or _part(options, part)
        total.update(line["answers"])
        if line["problems"]:
            print("WRONG:", *line["problems"], sep="\n  ", file=sys.stderr)
            return 1
        if sys.stderr.isatty():
            print(f"\r\033[K{part + 1}/{parts}", end="", file=sys.stderr, flush=True)
    print(json.dumps({"requests": sum(total.values()), "answers": dict(sorted(total.items()))}))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("fuzz-ledger.jsonl"))
    return parser.parse_args()


def _done(options: argparse.Namespace) -> dict[int, Any]:
    if not options.ledger.exists():
        return {}
    lines = [json.loads(line) for line in options.ledger.read_text().splitlines()]
    return {line["part"]: line for line in lines if line["seed"] == options.seed and not line["problems"]}


def _part(options: argparse.Namespace, part: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-fuzz-"))
    began = time.monotonic()
    answers: Counter[str] = Counter()
    with CollectorProcess(folder) as collector, ProcessPoolExecutor(1) as pool:
        collector.start()
        assert collector.process is not None
        send = partial(_volley, collector.grpc, f"127.0.0.1:{collector.http_port}")
        seeds = [(options.seed * 1_000 + part) * 1_000 + volley for volley in range(PART // VOLLEY)]
        with Memory(collector.process.pid) as memory:
            for told_ in pool.map(send, seeds):
                answers.update(told_)
            problems = _last_word(collector)
    problems += [f"{answers[wrong]} x {wrong}" for wrong in sorted(WRONG & answers.keys())]
    line = {"proof": "fuzz", "seed": options.seed, "part": part, "commit": commit(), "requests": sum(answers.values()),
            "time": datetime.now(UTC).isoformat("T", "seconds"), "seconds": round(time.monotonic() - began, 1),
            "answers": dict(sorted(answers.items())), "peak_mib": memory.peak >> 20, "problems": problems}  # fmt: skip
    with options.ledger.open("a") as ledger:
        ledger.write(json.dumps(line) + "\n")
    if problems:
        print(f"see {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return line


def _volley(grpc_target: str, http_address: str, seed: int) -> Counter[str]:
    fuzzer, readers, chance = Fuzzer(seed), ReaderFuzzer(seed), random.Random(seed)
    shots = [readers.shot() if chance.random() < READERS else fuzzer.shot() for _ in range(VOLLEY)]
    answers = Counter(
        f"HTTP {status}" for status in post_all(http_address, [each for each in shots if not each.is_grpc])
    )
    with Channel(grpc_target) as channel:
        calls = [channel.begin(each.body, each.path) for each in shots if each.is_grpc]
        answers.update(map(call_status, calls))
    return answers


def _last_word(collector: CollectorProcess) -> Sequence[str]:
    if not collector.running():
        return [f"the collector ended with {collector.exit_code()}:\n{collector.log()}"]
    collector.until(lambda: collector.gauge("traces_open") == 0, "done", 600)
    problems = []
    if residual := collector.gauge("accounting_residual"):
        problems.append(f"{residual:.0f} spans are in none of the books")
    if failed := sum(
        n for (name, outcome, _), n in collector.counts().items() if (name, outcome) == ("traces", "failed")
    ):
        problems.append(f"{failed} traces were given up")
    if (code := collector.stop()) != 0:
        problems.append(f"SIGTERM ended it with {code}")
    return problems


if __name__ == "__main__":
    sys.exit(main())

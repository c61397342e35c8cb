"""Measures the effect of hostile traces on ordinary traffic.

    python tests/lab/proofs/beside.py                                     # each input once and ten times: ten minutes
    python tests/lab/proofs/beside.py --times 10 --only "calls in calls"

Uses the inputs of ``tests/support/hostile/slow_inputs.py``. Requires: answers within a second (99th percentile),
decisions at most 10 s late, no restart, and results for each hostile trace. Each trial adds a ledger line; the same
seed and code resume. Exit code 1 on any problem.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from support.collector import CollectorProcess, DiedError  # noqa: E402
from support.good_judge import good_judge, judged_by  # noqa: E402
from support.hostile import doors  # noqa: E402
from support.hostile.beside import NormalTraffic  # noqa: E402
from support.hostile.beside_figures import answers, decisions, outcomes, problems  # noqa: E402
from support.hostile.mcp import ask_mcp  # noqa: E402
from support.hostile.random_traces import request_of  # noqa: E402
from support.hostile.slow_inputs import SLOW_INPUTS  # noqa: E402
from support.ledger import commit, lines, note  # noqa: E402
from support.senders import GrpcSender, HttpSender, Request, SpanSender  # noqa: E402

PAUSE_S, LOOK_S, DONE_S = 0.2, 0.5, 300.0
"""Seconds between traces, between polls, and until a timeout."""
QUICK = ("calls marked in a text", "a fence that does not end")


def main() -> int:
    options = _options()
    wanted = {"proof": "beside", "seed": options.seed, "commit": commit()}
    done = [line for line in lines(options.ledger) if wanted.items() <= line.items()]
    tried = {(line["input"], line["times"]) for line in done}
    for times in options.times or ([1] if options.quick else [1, 10]):
        for name in options.only or (QUICK if options.quick else SLOW_INPUTS):
            if (name, times) not in tried:
                trial = {"input": name, "times": times, **_tried(name, times, options)}
                done.append(note(options.ledger, "beside", {"seed": options.seed, **trial}))
                print(json.dumps(trial), file=sys.stderr, flush=True)
    wrong = [f"{line['input']} x {line['times']}: {each}" for line in done for each in line["problems"]]
    print(*wrong or [f"{len(done)} trials, nothing was wrong"], sep="\n")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, action="append", help="so many hostile traces (1 and 10)")
    parser.add_argument("--only", action="append", choices=[*SLOW_INPUTS], metavar="INPUT", help=", ".join(SLOW_INPUTS))
    parser.add_argument("--seconds", type=float, default=6.0, help="of ordinary traffic before, and after the results")
    parser.add_argument("--quick", action="store_true", help=f"once each: {', '.join(QUICK)}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, default=Path(__file__).with_name("beside-ledger.jsonl"))
    return parser.parse_args()


def _tried(name: str, times: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run a trial with its own collector."""
    folder = Path(tempfile.mkdtemp(prefix="pandaeval-beside-"))
    number = [*SLOW_INPUTS].index(name) + 100 * times
    ids = [(options.seed << 32 | number).to_bytes(8, "big") + trace.to_bytes(8, "big") for trace in range(1, times + 1)]
    requests = {id_: request_of(SLOW_INPUTS[name].spans(), id_) for id_ in ids}
    with contextlib.ExitStack() as own:
        settings = judged_by(own.enter_context(good_judge()), 1.0) if SLOW_INPUTS[name].judged else {}
        collector = own.enter_context(CollectorProcess(folder, settings, own_children=True, fresh=True))
        trial = _watched(collector.start(), requests, options)
    trial["load"] = round(os.getloadavg()[0], 1)
    trial["problems"] = problems(trial) + trial["problems"]
    if trial["problems"]:
        print(f"see {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return trial


def _watched(
    collector: CollectorProcess, requests: dict[bytes, Request], options: argparse.Namespace
) -> dict[str, Any]:
    assert collector.process is not None
    pid, ids = collector.process.pid, [id_.hex() for id_ in requests]
    address = collector.http.removeprefix("http://")
    wrong: list[str] = []
    _read(address, "overview", "pass_rates", {})  # starts the reader process
    with NormalTraffic(collector, options.seed, PAUSE_S) as traffic:
        time.sleep(options.seconds)
        alone, began = traffic.take(), time.monotonic()
        with contextlib.ExitStack() as own:
            ways: list[SpanSender] = [GrpcSender(collector.grpc), HttpSender(collector.http)]
            for way in ways:
                own.callback(way.close)
            for number, request in enumerate(requests.values()):
                while not (answer := ways[number % 2].send(request)).acknowledged and not answer.refused:
                    time.sleep(0.1)
                wrong += [f"a hostile trace was refused: {answer.refused}"] * bool(answer.refused)
        with contextlib.suppress(AssertionError):  # after a timeout or a crash, the outcomes lack results
            collector.until(lambda: not _outcomes(collector, ids)["without"], "done", DONE_S)
        results_s = time.monotonic() - began
        began = time.monotonic()
        for id_ in ids:
            read = _read(address, f"traces/{id_}", "why_failed", {"trace_id": id_})
            wrong += [f"reading {id_} came to {read}"] * (read != ("HTTP 200", "marked"))
        read_s = (time.monotonic() - began) / len(ids)
        time.sleep(options.seconds)
    beside = traffic.take()
    sent = alone.traces.keys() | beside.traces.keys()
    with contextlib.suppress(DiedError, AssertionError):
        collector.until(lambda: sent <= _decided(collector).keys(), "done", DONE_S)
    trial = {
        "alone": answers(alone.latencies_s),
        "beside": answers(beside.latencies_s),
        "decisions": decisions(alone.traces, beside.traces, _decided(collector)),
        "hostile": _outcomes(collector, ids) | {"results_s": round(results_s, 1), "read_s": round(read_s, 2)},
        "restarts": int(not collector.running() or collector.process.pid != pid),
        "line_restarts": sum(n for key, n in collector.counts().items() if key[:2] == ("workers", "ended")),
        "refused": [*alone.refused, *beside.refused],
        "problems": wrong,
    }
    if (code := collector.stop()) != 0:
        wrong.append(f"SIGTERM ended it with {code}")
    return trial


def _read(address: str, page: str, tool: str, arguments: dict[str, str]) -> tuple[str, str]:
    """Return the answers of API and MCP."""
    return doors.get(address, f"/api/v1/{page}"), ask_mcp(address, tool, arguments)


def _outcomes(collector: CollectorProcess, ids: list[str]) -> dict[str, Any]:
    time.sleep(LOOK_S)
    return outcomes(ids, collector.results())


def _decided(collector: CollectorProcess) -> dict[bytes, float]:
    time.sleep(LOOK_S)
    with collector.database() as database:
        return dict(database.execute("SELECT trace_id, min(decided_at) FROM traces GROUP BY trace_id").fetchall())


if __name__ == "__main__":
    sys.exit(main())

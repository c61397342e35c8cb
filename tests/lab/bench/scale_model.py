"""Computes the needs of 10,000 to a million spans per second from measured figures.

This is a calculation with ``scale_figures.yaml``. It assumes even partitions and independent workers.

    python tests/lab/bench/scale_model.py [--set judged_share=0.05 --set span_bytes=3000 ...]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from lab.bench._table import table

FIGURES = Path(__file__).with_name("scale_figures.yaml")
RATES = (10_000, 100_000, 1_000_000)
_DAY_S = 86_400


def figures() -> dict[str, float]:
    return {name: float(each["value"]) for name, each in yaml.safe_load(FIGURES.read_text()).items()}


def needs(rate: float, f: Mapping[str, float]) -> dict[str, float]:
    """Return the needs of ``rate`` spans per second by name."""
    traces = rate / f["spans_per_trace"]
    span_us = f["worker_cpu_us"] * f["kafka_factor"]
    workers = max(2, math.ceil(rate * span_us / 1e6 / f["busy"]))
    spans = rate * f["span_bytes"] / f["compression"]
    judged = traces * f["judged_share"]
    # A judged trace is sent on with its spans.
    with_spans = judged * f["spans_per_trace"] * f["span_bytes"]
    members = (traces * f["member_bytes"] + with_spans) / f["compression"]
    scores = traces * f["scores_bytes"] / f["compression"]
    logged = spans + members + scores
    kept = {
        "otlp_spans": spans * f["retention_s"],
        "eval.traces": members * (f["retention_s"] + f["session_s"]),
        "eval.scores": scores * f["scores_s"],
    }
    written = traces * f["result_bytes"]
    held = rate * f["span_bytes"] * (f["late_window_s"] + f["trace_life_s"]) + written * f["kept_s"]
    return {
        "traces/s": traces,
        "collectors behind loadbalancing": max(2, math.ceil(rate * f["worker_cpu_us"] / 1e6 / f["busy"])),
        "workers on Kafka": workers,
        "their cores": workers,
        "partitions": 12 * math.ceil(2 * workers / 12),
        "memory of a worker, MB": f["worker_memory_mb"]
        + traces / workers * (f["trace_life_s"] * f["open_trace_bytes"] + f["held_s"] * f["known_trace_bytes"]) / 1e6,
        "disk of a worker (store.max_bytes), GB": held / workers / 1e9,
        "a worker's disk writes, MB/s": 2 * (rate * f["span_bytes"] + written) / workers / 1e6,
        "brokers' cores, all replicas": rate * f["worker_cpu_us"] * f["broker_share"] * f["replicas"] / 1e6,
        **{f"brokers' disk for {name}, TB": f["replicas"] * each / 1e12 for name, each in kept.items()},
        "brokers' disk, all replicas, TB": f["replicas"] * sum(kept.values()) / 1e12,
        "into the brokers, MB/s": logged / 1e6,
        "between brokers, MB/s": logged * (f["replicas"] - 1) / 1e6,
        "out to workers, MB/s": (spans + members) / 1e6,
        "agents' OTLP, uncompressed, MB/s": rate * f["span_bytes"] / 1e6,
        "results to sinks, MB/s": written / 1e6,
        "series at most": workers * f["max_series"],
        "judged traces/s": judged,
        "judge calls/s": judged * f["calls_per_trace"],
        "calls under way": judged * f["calls_per_trace"] * f["call_s"],
        "judge tokens/s": judged * f["tokens_per_trace"],
        "judge, $ a day": judged * f["usd_per_1000"] / 1000 * _DAY_S,
        "$ a day if every trace is judged": traces * f["usd_per_1000"] / 1000 * _DAY_S,
    }


def report(f: Mapping[str, float]) -> str:
    """Return the table of docs/internals/scale-model.md."""
    found = [needs(rate, f) for rate in RATES]
    rows = [[name, *(each[name] for each in found)] for name in found[0]]
    title = f"{f['judged_share']:.0%} of traces judged, {f['span_bytes']:,.0f} bytes a span"
    return table(title, ["spans/s", *(f"{rate:,}" for rate in RATES)], rows).strip()


def sources() -> str:
    rows = [[name, each["value"], each["from"]] for name, each in yaml.safe_load(FIGURES.read_text()).items()]
    return table("Figures", ["figure", "value", "from"], rows).strip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="FIGURE=VALUE", help="another value of a figure")
    found = figures()
    for text in parser.parse_args(arguments).set:
        name, _, value = text.partition("=")
        if name not in found:
            parser.error(f"there is no figure {name}: {', '.join(found)}")
        found[name] = float(value)
    print(report(found))
    if arguments is None:
        print()
        print(sources())


if __name__ == "__main__":
    main()

"""Measures the cost of normalising spans by dialect, over captures of real frameworks.

    python tests/lab/bench/dialect_cost.py [--root DIR] [--passes N]

Each span counts in full for every dialect that reads it, by its fastest pass. "20 attributes" is the median of spans
with 15 to 25 attributes, or a fitted value in brackets. "JSON" is the parse time of its JSON texts.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

_REPO = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_REPO), str(_REPO / "collector")]

from _table import table  # noqa: E402

from pandaeval_otel.base._json import loads  # noqa: E402
from pandaeval_otel.model.raw import RawLog, RawSpan  # noqa: E402
from pandaeval_otel.normal.spans import normalize  # noqa: E402
from tests.golden.conformance_capture import read  # noqa: E402

_OWN = _REPO / "tests" / "golden" / "captures"
_SHARED = _REPO.parent / "shared" / "captures"
_FEW = 10

Pair = tuple[RawSpan, tuple[RawLog, ...]]


@dataclass(slots=True)
class _Cost:
    """Microseconds in total and for JSON, attributes and characters of a span."""

    us: float
    json_us: float
    attributes: int
    characters: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, action="append", default=[])
    parser.add_argument("--passes", type=int, default=7)
    options = parser.parse_args(arguments)
    print(report(options.passes, options.root))


def report(passes: int, roots: Sequence[Path] = ()) -> str:
    """Return the table of dialects."""
    pairs = [pair for root in roots or [_OWN, _SHARED] if root.is_dir() for pair in _spans(root)]
    by_dialect: dict[str, list[_Cost]] = {}
    texts = [_json_texts(span, logs) for span, logs in pairs]
    whole = _measured([partial(normalize, span, logs) for span, logs in pairs], passes)
    parsing = _measured([partial(_parse, each) for each in texts], passes)
    for (span, logs), us, json_us in zip(pairs, whole, parsing, strict=True):
        cost = _Cost(us, json_us, len(span.attributes), _characters(span, logs))
        for name in normalize(span, logs).dialects:
            by_dialect.setdefault(name, []).append(cost)
    head = ["dialect", "spans", "median", "p95", "20 attributes", "JSON", "attributes, median", "characters, median"]
    rows = [_row(name, costs) for name, costs in sorted(by_dialect.items())]
    return table(f"Microseconds to normalise a span, {len(pairs):,} spans", head, rows)


def _spans(root: Path) -> Iterator[Pair]:
    for path in sorted(root.glob("*/*.otlp.jsonl")):
        for recorded in read(path):
            by_span: dict[str, list[RawLog]] = {}
            for log in recorded.evidence.logs:
                by_span.setdefault(log.span_id, []).append(log)
            yield from ((span, tuple(by_span.get(span.span_id, ()))) for span in recorded.evidence.spans)


def _measured(readings: Sequence[Callable[[], object]], passes: int) -> list[float]:
    best = [float("inf")] * len(readings)
    clock = time.perf_counter_ns
    gc.collect()
    gc.freeze()
    gc.disable()
    for _ in range(passes):
        for index, reading in enumerate(readings):
            began = clock()
            reading()
            best[index] = min(best[index], (clock() - began) / 1000)
    gc.enable()
    return best


def _json_texts(span: RawSpan, logs: Sequence[RawLog]) -> list[str]:
    """Return the unique JSON texts of a span."""
    holders = (span.attributes, *(event.attributes for event in span.events), *(log.attributes for log in logs))
    values = [*(value for each in holders for value in each.values()), *(log.body for log in logs)]
    found = dict.fromkeys(value for value in values if isinstance(value, str) and value[:1] in ("[", "{"))
    return [text for text in found if _is_json(text)]


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(texts: Sequence[str]) -> None:
    for text in texts:
        loads(text)


def _characters(span: RawSpan, logs: Sequence[RawLog]) -> int:
    holders = (span.attributes, *(event.attributes for event in span.events), *(log.attributes for log in logs))
    texts = sum(len(value) for each in holders for value in each.values() if isinstance(value, str))
    return texts + sum(len(str(log.body)) for log in logs if log.body is not None)


def _row(name: str, costs: Sequence[_Cost]) -> list[object]:
    times = [cost.us for cost in costs]
    high = statistics.quantiles(times, n=20)[-1] if len(times) > 1 else times[0]
    sizes = (statistics.median(cost.attributes for cost in costs), statistics.median(cost.characters for cost in costs))
    near = [cost.json_us for cost in costs if 15 <= cost.attributes <= 25]
    parsing = f"{statistics.median(near):.1f}" if len(near) >= _FEW else ""
    median = f"{statistics.median(times):.1f}"
    return [name, len(costs), median, f"{high:.0f}", _of_twenty(costs), parsing, *map(int, sizes)]


def _of_twenty(costs: Sequence[_Cost]) -> str:
    near = [cost.us for cost in costs if 15 <= cost.attributes <= 25]
    if len(near) >= _FEW:
        return f"{statistics.median(near):.1f}"
    counts = [cost.attributes for cost in costs]
    if not min(counts) < 20 < max(counts):
        return ""
    line = statistics.linear_regression(counts, [cost.us for cost in costs])
    return f"({line.intercept + 20 * line.slope:.1f})"


if __name__ == "__main__":
    main()

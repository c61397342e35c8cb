"""Everything that is made of captures, but for clocks: run as a command it prints a line for each of the files named,
so that two builds of the package can be held against each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pandaeval_collector.embedding.load import load
from pandaeval_collector.evaluator import Evaluator, EvaluatorSettings
from pandaeval_collector.filerun import FileRun
from pandaeval_collector.receivers.files import Input

from pandaeval_otel.compiled import is_compiled
from pandaeval_otel.discovery import find

_THEN = datetime(2026, 1, 1, tzinfo=UTC)


def told(path: Path, evaluator: Evaluator) -> str:
    """A digest of the traces in normal form, and of their results with ids and scores."""
    with FileRun(evaluator) as run:
        for request in Input(str(path)).requests():
            run.add(request)
        traces = sorted(run.traces(), key=lambda trace: trace.trace_id)
        results = sorted(run.results(), key=lambda result: result.id)
    said = [repr(trace) for trace in traces]
    said += [repr(replace(result, duration_ms=0.0, time=_THEN)) for result in results]
    return f"{path.name} {len(traces)} traces {len(results)} results {sha256(chr(10).join(said).encode()).hexdigest()}"


def lines(paths: list[Path]) -> Iterator[str]:
    """First what discovery finds, in its order."""
    yield " ".join(dialect.name for dialect in find("pandaeval_otel.dialects", "DIALECT"))
    yield " ".join(metric.key for metric in find("pandaeval_collector.metrics", "METRIC"))
    evaluator = Evaluator(load("embedded"), EvaluatorSettings(score_fragments=True))
    for path in paths:
        yield told(path, evaluator)


if __name__ == "__main__":
    print("compiled" if is_compiled() else "pure")
    for line in lines([Path(argument) for argument in sys.argv[1:]]):
        print(line)

"""Cost grows linearly with trace size."""

from __future__ import annotations

import time
from functools import cache
from itertools import pairwise

import pytest

from pandaeval_collector.analysis.embedding import load
from pandaeval_collector.analysis.rules.grounding import evidence, values
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_otel.normal.trace import Closing, trace_of
from support.hostile_traces import SPANS

MOST_RATIO = 6.0
"""Maximum time ratio for a trace four times as large: linear is 4, quadratic 16."""
MOST_SECONDS = 0.05
"""Seconds below which timing is not significant."""
SIZES = (125, 500, 2_000, 8_000, 32_000)
"""If the largest trace takes less than ``MOST_SECONDS``, its cost does not depend on the size."""
SQUARE = {"growing history"}
"""Every model call repeats the history, so the trace itself grows quadratically."""


@cache
def evaluator() -> Evaluator:
    return Evaluator(load("embedded"))


def cpu(name: str, size: int) -> float:
    spans = SPANS[name](size)()
    evidence._kept.clear()  # removes cached contents of earlier traces
    values.values_of.cache_clear()
    begun = time.thread_time()
    trace = trace_of(spans, "d", Closing())
    texts = evaluator().embed([trace])
    evaluator().trace(trace, texts)
    evaluator().turns(trace, False)
    return time.thread_time() - begun


@pytest.mark.parametrize("name", sorted(SPANS.keys() - SQUARE))
def test_scoring_time_grows_linearly_with_trace_size(name: str) -> None:
    cpu("distinct", 3)  # loads everything that is loaded at first use
    for smaller, larger in pairwise(SIZES):
        if (many := cpu(name, larger)) > MOST_SECONDS:
            # A full cache can cause one slow step. Therefore measure again, and then at the next larger size.
            # A quadratic cost exceeds the limit there, too.
            assert (
                many / cpu(name, smaller) <= MOST_RATIO
                or _ratio(name, smaller, larger) <= MOST_RATIO
                or _ratio(name, larger, 4 * larger) <= MOST_RATIO
            )
            return


def _ratio(name: str, smaller: int, larger: int) -> float:
    few, many = (min(cpu(name, size), cpu(name, size)) for size in (smaller, larger))
    return many / few

"""Model-free results for real runs with known defects, from optional captures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_collector.base.score import Score
from pandaeval_collector.scoring.metrics.trace.response import response
from pandaeval_lab.replay.files import Input
from pandaeval_lab.replay.trace_files import TraceFiles
from pandaeval_otel.model import Trace

_CAPTURES = Path(__file__).parents[3] / "shared" / "captures"
_NO_MARK = {"agno_tl", "openlit_openai", "openai_v2_nocontent"}
"""Sets that do not record the error."""
_NO_ROOT = {"smolagents_oi", "smolagents_code_oi"}
"""Sets that never send the root span after an exception."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _CAPTURES.is_dir(), reason="the captures of real frameworks are not beside the repository"),
]


@cache
def runs(scenario: str) -> dict[str, list[Trace]]:
    """Return a scenario's traces by framework."""
    return {path.parent.name: [*_traces(path)] for path in sorted(_CAPTURES.glob(f"*/{scenario}.otlp.jsonl"))}


def _traces(path: Path) -> Iterator[Trace]:
    with TraceFiles() as run:
        for request in Input(str(path)).requests():
            run.add(request)
        yield from run.traces()


def _ended_badly(traces: list[Trace]) -> bool:
    return any(isinstance(found := response(trace), Score) and "ending" in found.metadata for trace in traces)


@pytest.mark.parametrize("scenario", ["llm_error", "tool_error"])
def test_runs_with_llm_or_tool_errors_are_found(scenario: str) -> None:
    traces_by_name = {name: traces for name, traces in runs(scenario).items() if name not in _NO_MARK | _NO_ROOT}
    missed = [name for name, traces in traces_by_name.items() if not _ended_badly(traces)]
    assert len(traces_by_name) > 30
    assert len(missed) <= 0.1 * len(traces_by_name), missed


@pytest.mark.parametrize("scenario", ["happy", "multi_turn", "bad_schema", "gives_up"])
def test_runs_without_errors_are_not_reported_as_failed(scenario: str) -> None:
    found = [name for name, traces in runs(scenario).items() if _ended_badly(traces)]
    assert len(found) <= 0.02 * len(runs(scenario)), found


def test_loops_are_found_without_false_alarms() -> None:
    looping = {name for name, traces in runs("loop").items() if any(tool_loop(trace).looping for trace in traces)}
    calls = {
        name
        for name, traces in runs("loop").items()
        if any(
            len([call for call in trace.tool_calls if call.has_arguments or call.has_result]) >= 5 for trace in traces
        )
    }
    assert len(calls) > 30
    assert len(looping & calls) >= 0.9 * len(calls), calls - looping
    for scenario in ("happy", "multi_turn", "long", "bad_schema"):
        for name, traces in runs(scenario).items():
            assert not any(tool_loop(trace).looping for trace in traces), (scenario, name)

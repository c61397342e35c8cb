"""Metric cost on hostile traces is linear and bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pandaeval_collector.analysis.rules import _rewording
from pandaeval_collector.analysis.rules.grounding import evidence, values
from pandaeval_collector.analysis.rules.grounding.claims import MOST_CLAIMS
from pandaeval_collector.analysis.rules.grounding.contradictions import MOST_DOUBTED
from pandaeval_collector.scoring.evaluator import Evaluator
from pandaeval_otel.model import Trace
from support.embedder import WordEmbedder
from support.hostile_traces import HOSTILE

_ROOT = Path(__file__).parents[2]
_OF_VALUES = {
    *("numbers everywhere", "dates everywhere", "names everywhere", "catastrophic texts"),
    *("long values", "periodic values", "opened code", "sentences", "changing fails", "many tools"),
}
"""Bounded by values or names, not by spans."""


def _calls(evaluator: Evaluator, trace: Trace) -> int:
    called = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    texts = evaluator.embed([trace])
    evidence._kept.clear()  # removes cached contents of other traces
    values.values_of.cache_clear()
    sys.setprofile(count)
    try:
        evaluator.trace(trace, texts)
        evaluator.turns(trace, False)
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - _OF_VALUES))
def test_cost_per_span_does_not_grow_with_the_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rewording, "_SUBJECTS", 8)  # the limit then also applies to short traces
    evaluator = Evaluator(WordEmbedder())
    small, large = HOSTILE[name](50), HOSTILE[name](150)
    _calls(evaluator, small)  # fills caches
    assert _calls(evaluator, large) / len(large.spans) <= 1.5 * _calls(evaluator, small) / len(small.spans)


def test_performance_page_documents_the_limits() -> None:
    """Limits: ``test_grounding.py`` (``TestLimits``), ``test_tool_loop.py``."""
    page = " ".join((_ROOT / "docs/internals/performance.md").read_text().split())
    counts = f"at most {MOST_CLAIMS} values of a trace, and compares at most {MOST_DOUBTED} of them with results"
    assert counts in page
    assert f"with at most {_rewording._SUBJECTS} subjects" in page


@pytest.mark.parametrize(
    "code",
    [
        "from pandaeval_otel.dialects._tool_values import unwrapped; unwrapped(' ' * 300_000)",
        "from pandaeval_collector.analysis.rules.grounding.values import scan; scan('a' * 400_000 + '@')",
    ],
)
def test_searches_over_long_texts_end_within_a_minute(code: str) -> None:
    path = {"PYTHONPATH": f"{_ROOT}:{_ROOT / 'collector'}"}
    subprocess.run([sys.executable, "-c", code], env=path, timeout=60, check=True)

"""Documented label figures match the code."""

from __future__ import annotations

from pathlib import Path

from lab.bench.trust_example import example
from pandaeval_collector.analysis.stats.corrected_rate import _LEAST_RARE, LEAST_LABELS
from pandaeval_collector.analysis.stats.quantiles import t_quantile, wilson
from pandaeval_collector.store.people import MOST_LABELS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = " ".join((DOCS / "guides" / "labels.md").read_text().split())


def test_the_worked_example_is_what_the_command_prints(tmp_path: Path) -> None:
    """Fix: `python tests/lab/bench/trust_example.py`."""
    page = (DOCS / "internals" / "judge-quality.md").read_text()
    shown = page.partition("### A worked example")[2].partition("```text\n")[2].partition("```")[0]
    assert shown == "\n".join(example(tmp_path)) + "\n"


def test_figures_on_the_labels_page_match_the_code() -> None:
    assert f"at least {LEAST_LABELS} labels of randomly selected runs" in PAGE
    assert f"the newest {MOST_LABELS:,} labels" in PAGE
    assert "the rarer verdict fewer than eight times" in PAGE
    assert _LEAST_RARE == 8
    low, _ = wilson(1.0, 50, t_quantile(49))
    assert f"up to {1 - low:.0%}".replace("%", " %") in PAGE

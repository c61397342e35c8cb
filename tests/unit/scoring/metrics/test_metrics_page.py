"""The metrics reference page is current."""

from __future__ import annotations

import re

from typer.testing import CliRunner

from pandaeval_collector.base.score import Why
from pandaeval_collector.cli import app
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cli.metrics import description, whys
from support.metrics_page import PAGE, reference_page


def test_page_lists_each_question_and_sections_have_at_most_80_words() -> None:
    page = reference_page()
    for key, metric in registry((GRADERS,)).items():
        section = page.partition(f"### {key}\n")[2].partition("\n### ")[0].partition("\n## ")[0]
        assert f"`](#{key.replace('.', '')}) ({metric.kind}, " in page.partition("\n## ")[0]
        assert f"): {metric.question}\n" in page.partition("\n## ")[0]
        assert re.search(r"\b(It|The metric) does not ", " ".join(description(metric).split())), f"{key} names no limit"
        assert "``" not in section
        assert len(section.split()) <= 80, key


def test_description_of_a_metric_contains_no_backticks() -> None:
    for key in registry((GRADERS,)):
        outcome = CliRunner().invoke(app, ["metrics", key])
        assert outcome.exit_code == 0, outcome.output
        assert "`" not in outcome.output, key


def test_statuses_page_explains_exactly_the_reasons_that_metrics_use() -> None:
    text = (PAGE.parent / "statuses.md").read_text(encoding="utf-8")
    table = text.partition("## Reasons of unscored results")[2].partition("\n## ")[0]
    explained = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")} - {"why"}
    assert explained == {why.value for metric in registry((GRADERS,)).values() for why in whys(metric)} <= {*Why}

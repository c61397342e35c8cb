"""The committed reference page of the metrics is what the registry says."""

from __future__ import annotations

from typer.testing import CliRunner

from pandaeval_collector.base.score import Why
from pandaeval_collector.cli import app
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cli.metrics import whys
from support.metrics_page import PAGE, reference_page


def test_the_committed_page_is_up_to_date() -> None:
    """Otherwise: ``cd tests && python -m support.metrics_page``."""
    assert PAGE.read_text(encoding="utf-8") == reference_page()


def test_it_tells_of_every_metric_what_it_asks_needs_costs_and_does_not_judge() -> None:
    page = reference_page()
    for key, metric in registry((GRADERS,)).items():
        section = page.partition(f"### {key}\n")[2].partition("\n### ")[0]
        assert metric.question in section
        assert f"| needs | {metric.needs} |" in section
        for fact in ("kind", "scale", "threshold", "costs", "unscored", "source"):
            assert f"| {fact} | " in section, f"{key}: {fact}"
        prose = " ".join(section.partition("| | |")[0].split())
        assert "It does not " in prose, f"{key} does not say what it does not judge"
        assert "``" not in section


def test_a_metric_is_described_in_plain_words() -> None:
    for key in registry((GRADERS,)):
        outcome = CliRunner().invoke(app, ["metrics", key])
        assert outcome.exit_code == 0, outcome.output
        assert "`" not in outcome.output, key


def test_every_why_that_a_metric_can_say_is_explained_and_no_other() -> None:
    table = reference_page().partition("## Why a result is unscored")[2]
    explained = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    explained = {why for why in explained if "." not in why}  # flags that were read stand by metric
    assert explained == {why.value for metric in registry((GRADERS,)).values() for why in whys(metric)} <= {*Why}

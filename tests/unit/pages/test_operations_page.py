"""The operate pages name existing metrics, alerts, keys and files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pandaeval_collector.config._tree import keys
from pandaeval_collector.show.api.live_page import runbook_page
from support.deploy import DEPLOY, ROOT, read
from support.own_metrics import ATTRIBUTES, PAGE, instruments, prometheus_name, written
from support.upgrade_page import named_now

_PAGES = (*sorted((ROOT / "docs" / "operate").glob("*.md")), PAGE)
_TEXT = "\n".join(map(named_now, _PAGES))
_RUNBOOK = ROOT / "docs" / "operate" / "runbook.md"
_RULES = DEPLOY / "prometheus" / "rules.yaml"
_ALERTS = [rule for group in read(_RULES)["groups"] for rule in group["rules"] if "alert" in rule]
_NAMES = {each.name for each in instruments()}


def test_the_table_of_own_metrics_is_up_to_date() -> None:
    """Fix: `python tests/support/own_metrics.py`."""
    assert written(PAGE.read_text()) == PAGE.read_text()
    assert set(ATTRIBUTES) <= _NAMES


def test_every_instrument_has_a_description() -> None:
    assert [each.name for each in instruments() if len(each.description) < 15] == []


def test_no_instrument_has_unit_1() -> None:
    """Prometheus appends ``_ratio`` for unit 1."""
    assert [each.name for each in instruments() if each.unit == "1"] == []


def test_every_metric_that_code_counts_is_in_the_registry() -> None:
    counted = set()
    for path in (ROOT / "collector").rglob("pandaeval_*/**/*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr in ("add", "gauge") and call.args:
                name = call.args[0]
                if isinstance(name, ast.Constant) and str(name.value).startswith("pandaeval."):
                    counted.add(str(name.value))
    assert len(counted) > 10
    assert counted <= _NAMES


@pytest.mark.parametrize("rule", _ALERTS, ids=lambda rule: str(rule["alert"]))
def test_every_alert_has_a_runbook_section(rule: dict[str, dict[str, str]]) -> None:
    link, _, anchor = rule["annotations"]["runbook"].rpartition("#")
    assert link.endswith("/runbook")
    assert f"<h2 id={anchor}>" in runbook_page()


def test_every_runbook_section_belongs_to_an_alert() -> None:
    anchors = {rule["annotations"]["runbook"].rpartition("#")[2] for rule in _ALERTS}
    assert set(re.findall(r"<h2 id=([\w-]+)>", runbook_page())) == anchors


def test_the_runbook_page_has_a_heading_a_list_of_alerts_and_a_link() -> None:
    page = runbook_page()
    anchors = re.findall(r"<h2 id=([\w-]+)>", page)
    assert re.findall(r"<li><a href=#([\w-]+)>", page) == anchors
    assert "<a href=./>" in page
    assert "<h1>Runbook</h1>" in page
    assert "set the incident to <i>known</i> or <i>resolved</i>" in page
    assert "*" not in re.sub(r"<style>.*?</style>|<code>.*?</code>", "", page)


def test_keys_named_on_the_operate_pages_exist() -> None:
    sections = {path[0] for path in keys()}
    named = {
        name for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)(?::[^`]*)?`", _TEXT) if name.split(".")[0] in sections
    }
    known = {".".join(path) for path in keys()} | {".".join(path[:-1]) for path in keys()}
    assert len(named) > 20
    assert named - known == {"session.id", "session.timeout.ms"}  # an attribute of spans, an option of librdkafka


def test_prometheus_series_named_on_the_operate_pages_exist() -> None:
    known = {prometheus_name(each) for each in instruments()}
    labels = {
        "pandaeval_outcome",
        "pandaeval_queue",
        "pandaeval_reason",
        "pandaeval_service",
        "pandaeval_url",
        "pandaeval_why",
    }
    packages = {"pandaeval_lab"}
    assert set(re.findall(r"\bpandaeval_[a-z_]+", _TEXT)) <= known | labels | packages


def test_the_runbook_of_the_collector_equals_the_runbook_of_the_docs() -> None:
    served = ROOT / "collector/pandaeval_collector/show/api/runbook.md"
    assert served.read_text() == _RUNBOOK.read_text()


def test_files_named_on_the_operate_pages_exist() -> None:
    for name in re.findall(r"`((?:deploy|tests|docs)/[\w./-]+)`", _TEXT):
        assert (ROOT / name).exists(), name
    assert Path(ROOT / "tests" / "lab" / "bench" / "run.py").exists()

"""Documented PromQL in Prometheus' engine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from support.prometheus import PROMTOOL

_DOCS = Path(__file__).parents[2] / "docs"
_RATE = '{__name__="pandaeval_evaluations_total", gen_ai_evaluation_name="task_completion"'

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="needs promtool: apt-get install prometheus")


def _shown(page: Path) -> list[str]:
    blocks = re.findall(r"```promql\n(.*?)```", page.read_text(), re.DOTALL)
    return [query for block in blocks for query in block.strip().split("\n\n")]


_PAGES = [page for page in sorted(_DOCS.rglob("*.md")) if _shown(page)]


def _promtool(*arguments: object) -> None:
    done = subprocess.run([str(PROMTOOL), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.stem)
def test_every_documented_query_parses(page: Path, tmp_path: Path) -> None:
    rules = [{"record": f"shown:{index}", "expr": query} for index, query in enumerate(_shown(page))]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "shown", "rules": rules}]}))
    _promtool("check", "rules", path)


def test_documented_sampling_query_returns_the_share_of_failed_results(tmp_path: Path) -> None:
    """3 of 10 judged results fail per minute."""
    series = {
        'pandaeval_outcome="scored", pandaeval_passed="false", pandaeval_service="a"': 1,
        'pandaeval_outcome="scored", pandaeval_passed="false", pandaeval_service="b"': 2,
        'pandaeval_outcome="scored", pandaeval_passed="true", pandaeval_service="a"': 7,
        'pandaeval_outcome="unscored", pandaeval_why="not_sampled", pandaeval_service="a"': 90,
        'pandaeval_outcome="unscored", pandaeval_why="judge_failed", pandaeval_service="b"': 5,
    }
    [query] = _shown(_DOCS / "guides/sampling.md")
    test = {
        "interval": "1m",
        "input_series": [
            {"series": f"{_RATE}, {labels}}}", "values": f"0+{a_minute}x1500"} for labels, a_minute in series.items()
        ],
        "promql_expr_test": [{"expr": query, "eval_time": "25h", "exp_samples": [{"labels": "{}", "value": 0.3}]}],
    }
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}))
    _promtool("test", "rules", path)

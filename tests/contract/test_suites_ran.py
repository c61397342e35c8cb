"""Every marked suite ran within 300 commits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_LEDGER = _ROOT / "tests" / "lab" / "suites-ledger.jsonl"
_MOST_COMMITS = 300


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git {arguments[0]} gives no answer here: {done.stderr.strip()[:100]}")
    return done.stdout.strip()


@pytest.mark.parametrize("suite", ["e2e", "slow"])
def test_a_suite_ran_within_300_commits(suite: str) -> None:
    """Fix: ``python tests/lab/suites.py SUITE``."""
    if _git("rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone does not have the history")
    runs = [json.loads(line) for line in _LEDGER.read_text().splitlines()]
    commits = [run["commit"] for run in runs if run["suite"] == suite]
    assert commits, f"python tests/lab/suites.py {suite}"
    since = int(_git("rev-list", "--count", "--first-parent", f"{commits[-1]}..HEAD"))
    assert since <= _MOST_COMMITS, f"{since} commits since the last run: python tests/lab/suites.py {suite}"

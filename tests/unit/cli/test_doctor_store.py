"""``pandaeval doctor`` without a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pandaeval_collector.cli import app


def test_a_named_store_must_exist(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["doctor", "--store", str(tmp_path / "nowhere")])
    assert outcome.exit_code == 1
    assert f"store: there is none in {tmp_path / 'nowhere'}" in outcome.output
    assert "name the data directory of a collector" in outcome.output


def test_the_default_store_is_created_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = CliRunner().invoke(app, ["doctor"])
    assert outcome.exit_code == 0, outcome.output
    assert "the collector creates it at its first start" in outcome.output

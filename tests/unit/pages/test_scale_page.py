"""docs/scale.md: its table of sizes is what the model computes from its figures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bench import scale_model

ROOT = Path(__file__).parents[3]
_PAGE = (ROOT / "docs" / "scale.md").read_text()


def test_the_table_is_what_the_model_prints() -> None:
    """Otherwise: ``python tests/bench/scale_model.py``."""
    assert scale_model.report(scale_model.figures()) in _PAGE


def test_each_figure_says_where_it_is_from() -> None:
    for name, figure in yaml.safe_load(scale_model.FIGURES.read_text()).items():
        kind, _, source = figure["from"].partition(": ")
        assert kind in ("measured", "set", "assumed"), name
        for script in (word for word in source.split() if word.endswith((".py", ".py,"))):
            assert (ROOT / script.strip(",")).exists(), f"{name}: {script}"


def test_a_figure_of_ones_own_changes_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    scale_model.main(["--set", "judged_share=0"])
    assert "| judge calls/s | 0 | 0 | 0 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        scale_model.main(["--set", "speed=1"])
    assert "there is no figure speed" in capsys.readouterr().err

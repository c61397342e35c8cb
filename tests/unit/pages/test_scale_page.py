"""docs/internals/scale-model.md matches its model."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lab.bench import scale_model

ROOT = Path(__file__).parents[3]
_PAGE = (ROOT / "docs" / "internals" / "scale-model.md").read_text()


def test_the_page_shows_the_table_that_the_model_prints() -> None:
    """Fix: ``python tests/lab/bench/scale_model.py``."""
    assert scale_model.report(scale_model.figures()) in _PAGE


def test_each_figure_names_its_source() -> None:
    for name, figure in yaml.safe_load(scale_model.FIGURES.read_text()).items():
        kind, _, source = figure["from"].partition(": ")
        assert kind in ("measured", "set", "assumed"), name
        for script in (word for word in source.split() if word.endswith((".py", ".py,"))):
            assert (ROOT / script.strip(",")).exists(), f"{name}: {script}"


def test_setting_a_figure_changes_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    scale_model.main(["--set", "judged_share=0"])
    assert "| judge calls/s | 0 | 0 | 0 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        scale_model.main(["--set", "speed=1"])
    assert "there is no figure speed" in capsys.readouterr().err


def test_the_helm_values_for_100000_spans_match_the_model() -> None:
    values = yaml.safe_load((ROOT / "deploy" / "helm" / "values-100k.yaml").read_text())
    needs = scale_model.needs(100_000, scale_model.figures())
    assert values["replicas"] == needs["workers on Kafka"]
    assert values["autoscaling"]["maxReplicas"] == needs["partitions"]
    config, resources = values["config"], values["resources"]
    assert config["kafka"]["sessions"] == "topic"
    store = _gib(config["store"]["max_bytes"])
    assert store * 1.074 >= needs["disk of a worker (store.max_bytes), GB"]
    assert _gib(values["persistence"]["size"]) >= 1.5 * store
    assert resources["requests"]["cpu"] == "1000m"
    assert int(resources["requests"]["memory"].removesuffix("Mi")) >= needs["memory of a worker, MB"]


def _gib(text: str) -> int:
    return int(text.rstrip("iBG"))

"""Example file and reference page are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pandaeval_collector.config import Config, docs, load
from pandaeval_collector.config._tree import keys
from support.config_page import reference_page

_ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("path", "made"),
    [("collector/config.example.yaml", docs.example_yaml), ("docs/reference/configuration.md", reference_page)],
)
def test_the_committed_file_is_up_to_date(path: str, made: object) -> None:
    """Fix: `pandaeval config schema --example`, or `python -m support.config_page`."""
    assert callable(made)
    assert (_ROOT / path).read_text(encoding="utf-8") == made()


def test_the_example_file_equals_the_defaults(tmp_path: Path) -> None:
    path = _ROOT / "collector/config.example.yaml"
    assert load(path, {}) == Config()
    commented = re.compile(r"^( *)# (?=(tls:|  (cert|key|client_ca): ))", re.MULTILINE)
    everything = commented.sub(r"\1", path.read_text(encoding="utf-8"))
    uncommented = tmp_path / "config.yaml"
    uncommented.write_text(everything.replace("  tls: null\n", ""), encoding="utf-8")
    tls = load(uncommented, {}).server.tls
    assert tls is not None
    assert tls.client_ca is None


def test_every_key_is_explained_in_example_and_page() -> None:
    example, page = docs.example_yaml(), reference_page().replace("`", "")
    for key in keys().values():
        assert len(key.meaning) > 10, key.path
        assert f"{key.path[-1]}:" in example
        if not key.section:
            meaning = re.escape(key.meaning.replace("`", ""))
            assert re.search(rf"- \*\*{key.path[-1]}\*\*(?: \(.*\))?: {meaning}\n", page)


def test_the_schema_has_defaults_and_patterns_for_durations_and_sizes() -> None:
    schema = docs.json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    close = schema["$defs"]["Close"]["properties"]
    assert close["quiet"]["default"] == "10s"
    assert close["max_bytes"]["default"] == "32MiB"
    for text, kind in (("10s", "quiet"), ("1h30m", "quiet"), ("32MiB", "max_bytes")):
        assert re.search(close[kind]["pattern"], text)
    for text, kind in (("ten", "quiet"), ("", "quiet"), ("32 potatoes", "max_bytes")):
        assert not re.search(close[kind]["pattern"], text)


def test_the_reference_page_shows_types_and_defaults_of_keys() -> None:
    page = reference_page()
    assert "- **`quiet`** (duration; default `10s`): " in page
    assert "- **`policy`** (`rescore`, `count`; default `rescore`): " in page
    assert "- **`cert`** (required): " in page
    assert "- **`token_env`**: " in page
    assert "- **`weights`** (map): " in page
    assert "- **`sample`** (number, 0 to 1; default `1.0`): " in page
    assert yaml.safe_load(docs.example_yaml())["exporters"]["otlp"]["metrics_interval"] == "15s"

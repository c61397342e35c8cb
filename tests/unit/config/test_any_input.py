"""Any invalid input gives an error that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from pandaeval_collector.config import Config, ConfigError, Problem, load
from support.examples import examples


def _problems(path: Path, environ: dict[str, str]) -> tuple[Problem, ...]:
    try:
        load(path, environ)
    except ConfigError as error:
        return error.problems
    return ()


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates()
_NAMES = st.sampled_from([*Config.model_fields, "quiet", "weights", "otlp", "tls", "enabled", "thresholds"]) | st.text(
    max_size=4
)
_TREES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4))


@settings(max_examples=examples(200), deadline=None)
@given(_TREES, st.dictionaries(_NAMES, st.text(max_size=20), max_size=3))
def test_any_yaml_value_loads_or_gives_problems_with_places(
    tmp_path_factory: pytest.TempPathFactory, tree: object, variables: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "config.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    environ = {f"PANDAEVAL_CLOSE__{name.upper()}": value for name, value in variables.items()}
    assert all(problem.message and problem.place for problem in _problems(path, environ))


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=60) | st.text("[]{}:,&*!|>-?#'\"\n a1", max_size=40).map(str.encode))
def test_any_file_bytes_load_or_give_problems_that_name_the_file(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("any") / "config.yaml"
    path.write_bytes(content)
    assert all(str(problem).startswith(str(path)) for problem in _problems(path, {}))

"""Each file that names the version names the same version."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.deploy import ROOT

_VERSION: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
_SERIES = _VERSION.rpartition(".")[0]
_NAMED = re.compile(
    r"pandaeval-(?:collector|otel)(?:\[[\w,]+\])?(?::|==|-)(\d+\.\d+\.\d+)"  # images, requirements, files
    r"|app\.kubernetes\.io/version: \"?(\d+\.\d+\.\d+)"
    r"|^(?:version|appVersion)(?:: | = )\"?(\d+\.\d+\.\d+)"
    r"|newest release of ([\d.]+)\.x",
    re.MULTILINE,
)
_EXPECTED = {
    "SECURITY.md": 1,
    "collector/pyproject.toml": 2,
    "deploy/compose/compose.yaml": 1,
    "deploy/helm/pandaeval/Chart.yaml": 2,
    "deploy/helm/pandaeval/README.md": 2,
    "deploy/kubernetes/gateway.yaml": 9,
    "deploy/kubernetes/sidecar-minimal.yaml": 1,
    "deploy/kubernetes/sidecar.yaml": 1,
    "docs/operate/deploy.md": 1,
    "pyproject.toml": 1,
}
"""Least number of times that a file names the version."""


def _texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.suffix in (".md", ".toml"))
    yield from (ROOT / "collector").glob("*.*")
    for folder in ("docs", "deploy"):
        suffixes = (".md", ".yaml", ".yml", ".txt", ".service", ".tpl", "")
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in suffixes)


def _named(path: Path) -> list[str]:
    return [next(filter(None, groups)) for groups in _NAMED.findall(path.read_text(encoding="utf-8"))]


def test_every_file_names_the_same_version() -> None:
    others = {str(path.relative_to(ROOT)): set(_named(path)) - {_VERSION, _SERIES} for path in _texts()}
    assert {path: found for path, found in others.items() if found} == {}


@pytest.mark.parametrize(("path", "least"), _EXPECTED.items(), ids=_EXPECTED)
def test_files_that_users_copy_from_name_the_version(path: str, least: int) -> None:
    assert len(_named(ROOT / path)) >= least

"""Contents of the two distributions."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

_ROOT = Path(__file__).parents[3]
_APPLICATION = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
_COLLECTOR = tomllib.loads((_ROOT / "collector" / "pyproject.toml").read_text())["project"]


def _wheel(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def _tops(wheel: Path) -> set[str]:
    return {name.partition("/")[0] for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}


def test_what_goes_into_applications_is_a_megabyte_at_most(tmp_path: Path) -> None:
    wheel = _wheel(_ROOT, tmp_path)
    assert _tops(wheel) == {"pandaeval_otel"}
    assert wheel.stat().st_size <= 1_000_000
    assert sum(each.file_size for each in ZipFile(wheel).infolist()) <= 1_000_000


def test_the_collectors_wheel_holds_its_data_and_licences(tmp_path: Path) -> None:
    wheel = _wheel(_ROOT / "collector", tmp_path)
    names = ZipFile(wheel).namelist()
    assert _tops(wheel) == {"pandaeval_collector", "pandaeval_lab"}
    for ending in (".npz", "sessions.otlp.jsonl.xz", "app.js", "py.typed", "licenses/LICENSE", "licenses/NOTICE"):
        assert [name for name in names if name.endswith(ending)], ending


def test_the_two_are_released_together() -> None:
    version = _APPLICATION["version"]
    assert _COLLECTOR["version"] == version
    assert f"pandaeval-otel=={version}" in _COLLECTOR["dependencies"]
    assert (_ROOT / "collector/LICENSE").read_text() == (_ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("project", [_APPLICATION, _COLLECTOR], ids=["pandaeval-otel", "pandaeval-collector"])
def test_what_an_application_installs_is_never_the_collector(project: dict[str, object]) -> None:
    heavy = ("numpy", "litellm", "pydantic", "scipy", "pandaeval-collector")
    named = [str(each) for each in project["dependencies"]]  # type: ignore[attr-defined]
    assert (project is _APPLICATION) == (not [each for each in named if each.startswith(heavy)])

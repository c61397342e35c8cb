"""Contents of the two distributions."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

_ROOT = Path(__file__).parents[3]
_PROJECTS = {"pandaeval-otel": _ROOT, "pandaeval-collector": _ROOT / "collector"}
_DESCRIBED = {name: tomllib.loads((folder / "pyproject.toml").read_text()) for name, folder in _PROJECTS.items()}
_MAINTAINERS = re.compile(r"\.sh$|^pandaeval_collector/scoring/metrics/\w+\.md$")
"""Files of the packages that no program reads."""
_ADDED = {".gitignore", "PKG-INFO", "pyproject.toml"}
"""Files that the build adds to each source distribution."""


@pytest.fixture(scope="module", params=_PROJECTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def built(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with wheel and source distribution."""
    folder = tmp_path_factory.mktemp(name)
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=_PROJECTS[name], check=True, capture_output=True)
    return folder


def _tracked(name: str, *folders: str) -> set[str]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *folders]
    done = subprocess.run(command, cwd=_PROJECTS[name], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the checkout has no git")
    return {path for path in done.stdout.split("\0") if path and (_PROJECTS[name] / path).exists()}


def _build(name: str, target: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = _DESCRIBED[name]["tool"]["hatch"]["build"]["targets"][target]
    return found


def _metadata(wheel: ZipFile) -> Message:
    (path,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(path))


def test_a_wheel_holds_the_files_of_its_packages_and_nothing_else(name: str, built: Path) -> None:
    with ZipFile(*built.glob("*.whl")) as wheel:
        held = {path for path in wheel.namelist() if ".dist-info/" not in path}
    tracked = _tracked(name, *_build(name, "wheel")["packages"])
    assert held == {path for path in tracked if not _MAINTAINERS.search(path)}


def test_a_source_distribution_holds_exactly_its_declared_files(name: str, built: Path) -> None:
    with tarfile.open(*built.glob("*.tar.gz")) as archive:
        held = {str(PurePosixPath(*PurePosixPath(path).parts[1:])) for path in archive.getnames()}
    included = [path.removeprefix("/") for path in _build(name, "sdist")["include"]]
    assert held == _tracked(name, *included) | _ADDED


def test_a_wheel_holds_its_licences_and_is_typed(name: str, built: Path) -> None:
    with ZipFile(*built.glob("*.whl")) as wheel:
        names, metadata = wheel.namelist(), _metadata(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    tops = {path.partition("/")[0] for path in names if ".dist-info/" not in path}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    for licence in ("LICENSE", "NOTICE"):
        assert [path for path in names if path.endswith(f".dist-info/licenses/{licence}")]


def test_a_wheel_offers_the_extras_that_the_project_declares(name: str, built: Path) -> None:
    with ZipFile(*built.glob("*.whl")) as wheel:
        metadata = _metadata(wheel)
    declared = _DESCRIBED[name]["project"]
    assert set(metadata.get_all("Provides-Extra")) == set(declared["optional-dependencies"])
    assert metadata["Version"] == declared["version"]
    assert metadata["Requires-Python"] == declared["requires-python"]


@pytest.mark.parametrize("name", ["pandaeval-otel"], indirect=True)
def test_the_otel_wheel_has_at_most_one_megabyte(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size <= 1_000_000
    assert sum(each.file_size for each in ZipFile(wheel).infolist()) <= 1_000_000


@pytest.mark.parametrize("name", ["pandaeval-collector"], indirect=True)
def test_the_collectors_wheel_holds_its_data(built: Path) -> None:
    names = ZipFile(*built.glob("*.whl")).namelist()
    for ending in (".npz", "sessions.otlp.jsonl.xz", "app.js", "uPlot.LICENSE.txt", "tables.sql", "suite.yaml"):
        assert [path for path in names if path.endswith(ending)], ending


def test_both_packages_have_the_same_version_and_licence() -> None:
    application, collector = (_DESCRIBED[name]["project"] for name in _PROJECTS)
    version = application["version"]
    assert collector["version"] == version
    assert f"pandaeval-otel=={version}" in collector["dependencies"]
    assert (_ROOT / "collector/LICENSE").read_text() == (_ROOT / "LICENSE").read_text()


def test_only_the_collector_depends_on_heavy_packages(name: str) -> None:
    heavy = ("numpy", "litellm", "pydantic", "scipy", "pandaeval-collector")
    named = _DESCRIBED[name]["project"]["dependencies"]
    assert (name == "pandaeval-otel") == (not [each for each in named if each.startswith(heavy)])

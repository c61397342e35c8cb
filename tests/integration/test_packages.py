"""Wheels and source distributions of both packages work in bare environments.

python -m pytest -m slow tests/integration/test_packages.py    # installs packages: about fifteen minutes
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
_ROOT = Path(__file__).parents[2]
_COLLECTOR = tomllib.loads((_ROOT / "collector" / "pyproject.toml").read_text())["project"]
_EXTRAS = ["", *_COLLECTOR["optional-dependencies"]]
_FORMS = {"wheel": "whl", "sdist": "tar.gz"}
_HEAVY = {"numpy", "litellm", "pydantic", "pandaeval-collector"}
_IMPORTED = """
import importlib, json, pkgutil, sys
from pandaeval_collector.cli._extras import EXTRAS
missing = {}
for name in sys.argv[1:]:
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            top = error.name.partition(".")[0]
            missing[module.name] = next((extra for extra, names in EXTRAS.items() if top in names), top)
print(json.dumps(missing))
"""
"""Prints the modules that cannot be imported, each with the extra or the package that it needs."""
_PROCESSOR = """
from opentelemetry.sdk.trace import TracerProvider
from pandaeval_otel import PandaEvalSpanProcessor
provider = TracerProvider()
provider.add_span_processor(PandaEvalSpanProcessor(endpoint="127.0.0.1:1", shutdown_timeout=1))
with provider.get_tracer("agent").start_as_current_span("invoke_agent"):
    pass
provider.shutdown()
print("done")
"""


class _Bare:
    """A virtual environment with only pip, and an empty working folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.programs = folder / "work", folder / "venv" / "bin"
        self.folder.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    def run(self, program: str, *arguments: object, code: int = 0) -> str:
        """Assert the exit code and return the program's output."""
        hidden = ("PANDAEVAL", "PYTHON", "VIRTUAL", "OTEL")
        environ = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        environ["PATH"] = f"{self.programs}{os.pathsep}{environ['PATH']}"
        command = [str(self.programs / program), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        assert done.returncode == code, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr

    def install(self, *requirements: object) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", *requirements)
        self.run("python", "-m", "pip", "check")

    def installed(self) -> set[str]:
        listed = json.loads(self.run("python", "-m", "pip", "list", "--format", "json"))
        return {each["name"].lower() for each in listed}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both source distributions, and both wheels that were built from them."""
    folder = tmp_path_factory.mktemp("dist")
    for project in (_ROOT, _ROOT / "collector"):
        before = {*folder.glob("*.tar.gz")}
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder], cwd=project, check=True
        )
        (made,) = {*folder.glob("*.tar.gz")} - before
        with tarfile.open(made) as archive:
            archive.extractall(folder / "unpacked", filter="data")
        unpacked = folder / "unpacked" / made.name.removesuffix(".tar.gz")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=unpacked, check=True
        )
    return folder


def _file(built: Path, name: str, form: str) -> Path:
    (found,) = built.glob(f"{name}-*.{_FORMS[form]}")
    return found


@pytest.mark.parametrize("project", ["pandaeval_otel", "pandaeval_collector"])
def test_a_wheel_built_from_the_sdist_equals_a_wheel_built_from_the_repository(
    built: Path, project: str, tmp_path: Path
) -> None:
    place = _ROOT if project == "pandaeval_otel" else _ROOT / "collector"
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=place, check=True)
    with ZipFile(_file(built, project, "wheel")) as one, ZipFile(_file(tmp_path, project, "wheel")) as other:
        assert {each.filename: each.CRC for each in one.infolist()} == {
            each.filename: each.CRC for each in other.infolist()
        }


@pytest.mark.parametrize("form", _FORMS)
def test_the_sdk_package_runs_alone(built: Path, form: str, tmp_path: Path) -> None:
    bare = _Bare(tmp_path)
    bare.install(_file(built, "pandaeval_otel", form))
    assert bare.run("python", "-W", "error", "-c", _PROCESSOR).startswith("done\n")
    assert not bare.installed() & _HEAVY


@pytest.mark.parametrize("extra", _EXTRAS, ids=lambda extra: extra or "no extra")
@pytest.mark.parametrize("form", _FORMS)
def test_the_collector_runs_with_each_extra(built: Path, form: str, extra: str, tmp_path: Path) -> None:
    bare = _Bare(tmp_path)
    asked = f"{_file(built, 'pandaeval_collector', form)}{f'[{extra}]' if extra else ''}"
    bare.install(_file(built, "pandaeval_otel", form), asked)
    assert bare.run("pandaeval", "--version") == f"pandaeval {_COLLECTOR['version']}\n"

    names = ("pandaeval_otel", "pandaeval_collector", "pandaeval_lab")
    missing = json.loads(bare.run("python", "-c", _IMPORTED, *names).splitlines()[-1])
    given = set(_EXTRAS) - {""} if extra == "all" else {extra}
    assert set(missing.values()) <= {*_EXTRAS, "pytest"} - given - {""}, missing

    if extra in ("", "all"):
        _show_help(bare)
    output = bare.run("pandaeval", "demo", "--once", "--keep", "results.jsonl")
    assert "made-up-price" in output
    assert (bare.folder / "results.jsonl").stat().st_size > 10_000
    bare.run("pandaeval", "config", "check")
    assert "grounding" in bare.run("pandaeval", "metrics")
    has_mcp = extra in ("mcp", "all")
    assert has_mcp or 'pip install "pandaeval-collector[mcp]"' in bare.run("pandaeval", "mcp", code=2)


def _show_help(bare: _Bare) -> None:
    """Assert that each command prints its help."""
    commands = re.findall(r"^  ([a-z]+) ", bare.run("pandaeval", "-h").partition("\nStart:")[2], re.MULTILINE)
    assert len(commands) >= 27
    for command in commands:
        assert "Usage:" in bare.run("pandaeval", command, "-h")


@pytest.mark.parametrize("section", ["Try it"])
def test_the_first_commands_of_the_readme_run(section: str, tmp_path: Path) -> None:
    block = re.search(
        rf"^## {section}$.*?^```bash\n(.*?)^```", (_ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert block
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=_ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tmp_path, input=archive, check=True)
    hidden = ("PANDAEVAL", "PYTHON", "VIRTUAL", "OTEL")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    done = subprocess.run(
        ["bash", "-e", "-c", block[1]], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "made-up-price" in done.stdout

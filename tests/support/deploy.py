"""The files of ``deploy/`` and the programs that check them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
_HOME = Path.home() / ".cache" / "pandaeval"


def read(path: Path) -> Any:
    """Load a YAML file with one document."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def services() -> Mapping[str, Any]:
    found: Mapping[str, Any] = read(COMPOSE)["services"]
    return found


def mounts(service: Mapping[str, Any], folder: Path) -> Iterator[tuple[Path, str]]:
    """Return (host path, container path) of a service's mounts."""
    for volume in service.get("volumes", ()):
        source, target = volume.split(":")[:2]
        if source.startswith("."):
            yield (folder / source).resolve(), target


def module(name: str) -> list[str]:
    """Return a PyPI checker as a command, or skip (``pip install .[deploy]``)."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: pip install '.[deploy]'")
    return [sys.executable, "-m", name]


def check(name: str, *arguments: object) -> None:
    """Run ``python -m name`` in this process, or skip if missing."""
    module(name)
    output, code = io.StringIO(), None
    with (
        mock.patch.object(sys, "argv", [name, *map(str, arguments)]),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        try:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{name} ended with {code}\n{output.getvalue()}"


def program(name: str) -> str:
    """Find a program on the path, in the cache, or by variable such as ``PANDAEVAL_HELM``; else skip."""
    variable = f"PANDAEVAL_{name.upper().replace('-', '_')}"
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = os.environ.get(variable) or shutil.which(name, path=beside) or shutil.which(name, path=str(_HOME / "bin"))
    if not found:
        pytest.skip(f"there is no {name} here; {variable} may name one (docs/operate/deploy.md)")
    return found


def run(*command: object, **variables: str) -> str:
    """Return a program's output; assert success."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=ROOT, env=os.environ | variables
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout

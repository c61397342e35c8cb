"""Compiles the modules that most of the time is spent in, with mypyc, when a wheel is built.

Only where HATCH_BUILD_HOOKS_ENABLE=1 asks for it: without that, the wheel is Python alone and needs no compiler. Which
modules, and why no others, stands in pyproject.toml. Everything is made in a folder of its own, so that no file of
the checkout is touched; the wheel holds both the sources and what was made of them, and Python prefers the latter.
PANDAEVAL_OPT_LEVEL=0 has the C compiler hurry, for a wheel whose behaviour is to be tried and not its speed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PACKAGES = {"pandaeval_otel": "pandaeval_otel", "pandaeval_collector": "collector/pandaeval_collector"}
# What is not installed while a wheel is built has no types, and what happens to be installed shall make no difference.
_MYPY = ["--config-file=", "--no-site-packages", "--ignore-missing-imports", "--follow-imports=silent"]
_SETUP = """
from mypyc.build import mypycify
from setuptools import setup

arguments = [*{options!r}, *{modules!r}]
libraries = mypycify(arguments, multi_file=True, opt_level={level!r}, debug_level="0", group_name={library!r})
setup(name="compiled", packages=[], ext_modules=libraries)
"""


class CompiledModules(BuildHookInterface[Any]):
    """Adds the compiled modules to the wheel, which becomes one for this Python and this machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raises ``RuntimeError`` with what the compiler said if it does not succeed."""
        if version == "editable":
            return  # or an edited file would not be what runs
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        for package, where in _PACKAGES.items():
            copytree(Path(self.root, where), folder / package, ignore=ignore_patterns("__pycache__", "*.so"))
        modules = _chosen(folder, self.config["compile"], self.config["leave"])
        self.app.display_info(f"mypyc compiles {len(modules)} modules, which takes minutes")
        _compile(folder, modules, os.environ.get("PANDAEVAL_OPT_LEVEL", self.config["opt-level"]))
        for library in (*folder.glob("*.so"), *folder.glob("pandaeval_*/**/*.so")):
            build_data["force_include"][str(library)] = str(library.relative_to(folder))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Everything is in the wheel now."""
        if version != "editable":
            self._folder.cleanup()


def _chosen(folder: Path, compile_: list[str], leave: list[str]) -> list[str]:
    """Paths below ``folder``. Raises ``RuntimeError`` for a pattern that chooses or leaves out nothing (any more)."""
    found: set[Path] = set()
    for pattern in compile_:
        found |= _some(set(folder.glob(pattern)), pattern)
    chosen = found.copy()
    for pattern in leave:
        chosen -= _some(found & set(folder.glob(pattern)), pattern)
    return sorted(str(path.relative_to(folder)) for path in chosen)


def _some(named: set[Path], pattern: str) -> set[Path]:
    if not named:
        raise RuntimeError(f"pyproject.toml, tool.hatch.build.targets.wheel.hooks.custom: {pattern} names no module")
    return named


def _compile(folder: Path, modules: list[str], level: str) -> None:
    """In place. In a process of its own, as both mypy and setuptools work from the current folder."""
    setup = _SETUP.format(options=_MYPY, modules=modules, level=level, library="pandaeval")
    (folder / "setup.py").write_text(setup)
    made = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=folder, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise RuntimeError(f"mypyc could not compile the modules:\n{made.stdout[-20_000:]}\n{made.stderr[-20_000:]}")

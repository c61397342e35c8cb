"""Environments of sets that run on Node: packages by npm, and the script beside them, where it finds them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def install(folder: Path, packages: Sequence[str]) -> None:
    """A fresh folder with the packages, each written ``name@version``. Their install scripts are not run, and what
    one says of the release of another is not heeded: a script here shows which go together."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}')
    install = [shutil.which("npm") or "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run([*install, "--force", *packages], cwd=folder, check=True)


def command(folder: Path, script: Path) -> list[str]:
    """How the script is started: a copy in the folder, because imports are looked up from where a module lies."""
    return [shutil.which("node") or "node", shutil.copy(script, folder)]


def versions(folder: Path) -> dict[str, str]:
    """Package to version of all that is installed."""
    lock = json.loads((folder / "package-lock.json").read_text())
    # A package that another brought along in a release of its own lies deeper: the outermost is what a script gets.
    inwards = sorted(lock["packages"].items(), key=lambda item: -item[0].count("node_modules/"))
    installed = {path.rpartition("node_modules/")[2]: entry for path, entry in inwards if path}
    return {name: entry["version"] for name, entry in sorted(installed.items())}

"""Node environments: npm packages and the script."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def install(folder: Path, packages: Sequence[str]) -> None:
    """Install packages ``name@version`` into a fresh folder, without scripts and peer checks."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}')
    install = [shutil.which("npm") or "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run([*install, "--force", *packages], cwd=folder, check=True)


def command(folder: Path, script: Path) -> list[str]:
    """Return the start command of a copy inside the folder."""
    return [shutil.which("node") or "node", shutil.copy(script, folder)]


def versions(folder: Path) -> dict[str, str]:
    lock = json.loads((folder / "package-lock.json").read_text())
    # Nested copies belong to other packages. The script imports the outermost copy.
    inwards = sorted(lock["packages"].items(), key=lambda item: -item[0].count("node_modules/"))
    installed = {path.rpartition("node_modules/")[2]: entry for path, entry in inwards if path}
    return {name: entry["version"] for name, entry in sorted(installed.items())}

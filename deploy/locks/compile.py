"""Locks dependencies with hashes: ``python deploy/locks/compile.py [collector judge …]``.

Needs uv and the package index.

``collector``, ``judge``: the image without and with a judge. ``ci``: tests. ``build``, ``sbom``: wheels and package
lists.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_TOOLS = {"build": "hatchling==1.33.0", "sbom": "cyclonedx-bom==7.5.0"}
_OURS = re.compile(r"^pandaeval-(otel|collector)\b(\[(?P<extras>[^\]]*)\])?")


def requirements(lock: str) -> list[str]:
    """Return a lock's requirements, without our own packages."""
    if lock in _TOOLS:
        return [_TOOLS[lock]]
    application, collector = (
        tomllib.loads((_ROOT / name).read_text())["project"] for name in ("pyproject.toml", "collector/pyproject.toml")
    )
    extras = collector["optional-dependencies"]
    asked = [*application["dependencies"], *collector["dependencies"], *extras["kafka"]]
    if lock == "judge":
        asked += extras["judge"]
    if lock == "ci":
        for each in application["optional-dependencies"]["dev"]:
            ours = _OURS.match(each)
            asked += [each] if ours is None else [one for name in ours["extras"].split(",") for one in extras[name]]
    return [each for each in dict.fromkeys(asked) if not _OURS.match(each)]


def main() -> None:
    for lock in sys.argv[1:] or ("collector", "judge", "ci", *_TOOLS):
        target = Path(__file__).with_name(f"{lock}.txt")
        options = ["--generate-hashes", "--no-header", "--no-annotate", "--universal", "--quiet"]
        command = ["uv", "pip", "compile", "-", "--python-version", "3.11", *options, "-o", str(target)]
        subprocess.run(command, input="\n".join(requirements(lock)), text=True, check=True)
        print(f"{target.relative_to(_ROOT)}: {target.read_text().count('==')} packages")


if __name__ == "__main__":
    main()

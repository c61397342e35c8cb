"""How large the house is: rooms, arrows, files, lines, the walk from the door to the outbox, wheels and what they
install. The table "How large it is" of docs/internals/architecture.md.

    python tests/lab/bench/house.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from _table import table
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from walk import walked

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.architecture import PACKAGES, ROOT, arrows, floors, public_classes, rooms

_OURS = {"pandaeval-otel": ROOT, "pandaeval-collector": ROOT / "collector"}


def _files(package: str) -> list[Path]:
    """The Python files of a package that people write."""
    return [path for path in PACKAGES[package].rglob("*.py") if "_pb2" not in path.name]


def _lines(files: Iterable[Path]) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def _wheel(project: Path) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
        [made] = Path(folder).glob("*.whl")
        return f"{made.stat().st_size / 1e6:.2f} MB"


def _needed(name: str, known: dict[str, Distribution]) -> Iterator[Distribution]:
    """A distribution and, without extras, all that it depends on, as far as this environment has it."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if canonicalize_name(name) in known:
        return
    known[canonicalize_name(name)] = found
    yield found
    project = _OURS.get(found.name)
    ours = tomllib.loads((project / "pyproject.toml").read_text())["project"]["dependencies"] if project else None
    for each in map(Requirement, ours or found.requires or ()):
        if each.marker is None or each.marker.evaluate({"extra": ""}):
            yield from _needed(each.name, known)


def _installed(name: str) -> str:
    """Bytes on disk, without bytecode. Our own packages may be installed as links: they count by their folders."""
    size = 0
    for found in _needed(name, {}):
        if found.name in _OURS:
            paths: Iterable[Path] = PACKAGES[found.name.replace("-", "_")].rglob("*")
        else:
            paths = (Path(str(each.locate())) for each in found.files or ())
        size += sum(path.stat().st_size for path in paths if path.is_file() and path.suffix != ".pyc")
    return f"{size / 1e6:.0f} MB"


def main() -> None:
    walk = walked()
    rows: list[list[object]] = []
    for package in PACKAGES:
        inside = rooms(package)
        files = _files(package)
        rows.append([f"`{package}`: entries at the top", len(list(PACKAGES[package].glob("[!_]*")))])
        rows.append(["rooms", len(inside)])
        rows.append(["arrows between them", sum(len(others & inside.keys()) for others in arrows(package).values())])
        rows.append(["floors, without a circle", len(floors(package))])
        rows.append(["files", len(files)])
        rows.append(["lines", f"{_lines(files):,}"])
    rows.append(["names that two classes have", sum(len(files) > 1 for files in public_classes().values())])
    rows.append(["two traces of three spans: files passed", len(walk.files)])
    rows.append(["rooms passed, of both packages", len(walk.rooms)])
    rows.append(["room changes, calls and returns", sum(walk.changes.values())])
    for name, project in _OURS.items():
        rows.append([f"wheel of `{name}`", _wheel(project)])
        rows.append([f"`{name}` installed with all that it needs", _installed(name)])
    print(table("How large it is", ["", ""], rows))


if __name__ == "__main__":
    main()

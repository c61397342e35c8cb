"""Tables of packages and imports for docs/internals/architecture.md.

python tests/support/architecture.py    # writes them into the page
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "internals" / "architecture.md"
PACKAGES = {
    "pandaeval_collector": ROOT / "collector" / "pandaeval_collector",
    "pandaeval_lab": ROOT / "collector" / "pandaeval_lab",
    "pandaeval_otel": ROOT / "pandaeval_otel",
}
_MARKED = re.compile(r"(<!-- rooms of (\w+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def subpackages(package: str) -> dict[str, Path]:
    """Return the top-level folders of ``package`` by name, without generated ones."""
    folders = (path for path in sorted(PACKAGES[package].iterdir()) if (path / "__init__.py").exists())
    return {path.name: path for path in folders if not path.name.startswith("_")}


@cache
def package_imports(package: str) -> dict[str, set[str]]:
    """Return the top-level entries that each folder imports."""
    return {
        name: {other for other in _imported(package, path) if other != name}
        for name, path in subpackages(package).items()
    }


def _imported(package: str, folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        for node in ast.walk(_tree(file)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            yield from (name.split(".")[1] for name in names if name.startswith(f"{package}."))


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def import_layers(package: str) -> list[list[str]]:
    """Return packages by import depth, highest first. Raises ``ValueError`` for a cycle."""
    down = {name: others & subpackages(package).keys() for name, others in package_imports(package).items()}
    found: list[list[str]] = []
    placed: set[str] = set()
    while len(placed) < len(down):
        floor = sorted(name for name, others in down.items() if name not in placed and others <= placed)
        if not floor:
            raise ValueError(f"a circle of imports between {', '.join(sorted(down.keys() - placed))}")
        found.insert(0, floor)
        placed.update(floor)
    return found


def public_classes() -> dict[str, list[str]]:
    """Return the files that define each public class, by class name."""
    found: dict[str, list[str]] = {}
    for folder in PACKAGES.values():
        for file in sorted(folder.rglob("*.py")):
            nodes = ast.walk(_tree(file)) if "_proto" not in file.parts else ()
            for node in nodes:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found.setdefault(node.name, []).append(str(file.relative_to(ROOT)))
    return found


def docstring(folder: Path) -> str:
    return ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""


def table(package: str) -> str:
    """Return a row per package: purpose and imports."""
    paths, imported = subpackages(package), package_imports(package)
    rows = []
    for floor in import_layers(package):
        for name in floor:
            what = " ".join(docstring(paths[name]).split("\n\n")[0].split()).replace("``", "`")
            rows.append(f"| `{name}/` | {what} | {', '.join(sorted(imported[name])) or '–'} |")
    lowest = " → ".join(" \\| ".join(floor) for floor in import_layers(package))
    return "\n".join(
        [f"Layers, from the top down: {lowest}.", "", "| package | purpose | imports |", "|---|---|---|", *rows, ""]
    )


def page() -> str:
    return _MARKED.sub(lambda found: f"{found[1]}\n{table(found[2])}\n{found[3]}", PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

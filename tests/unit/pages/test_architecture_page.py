"""docs/internals/architecture.md matches packages and imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.architecture import (
    PACKAGES,
    PAGE,
    ROOT,
    docstring,
    import_layers,
    package_imports,
    page,
    public_classes,
    subpackages,
)

ROOMS = [(package, name) for package in PACKAGES for name in subpackages(package)]


def test_the_tables_on_the_page_match_the_code() -> None:
    """Fix: ``python tests/support/architecture.py``."""
    assert page() == PAGE.read_text()


@pytest.mark.parametrize(("package", "room"), ROOMS)
def test_a_folder_docstring_has_a_one_sentence_summary_and_ends_with_its_imports(package: str, room: str) -> None:
    what, *_, last = docstring(subpackages(package)[room]).split("\n\n")
    assert what.endswith(".")
    assert ". " not in what
    imported = package_imports(package)[room]
    assert " ".join(last.split()) == (
        f"Imports {', '.join(sorted(imported))}." if imported else "Imports no other room."
    )


def test_the_number_of_collector_folders_imports_and_layers_is_limited() -> None:
    assert len(subpackages("pandaeval_collector")) <= 16
    assert (
        sum(
            len(others & subpackages("pandaeval_collector").keys())
            for others in package_imports("pandaeval_collector").values()
        )
        <= 93
    )
    assert len(import_layers("pandaeval_collector")) <= 11


def test_public_class_names_are_unique() -> None:
    assert {name: files for name, files in public_classes().items() if len(files) > 1} == {}


def test_packages_contain_only_folders_and_public_modules() -> None:
    for package, folder in PACKAGES.items():
        found = {path.name for path in folder.iterdir()} - {"__pycache__", *subpackages(package)}
        assert found <= {"__init__.py", "py.typed", "stats.py", "_proto"}


def _on_the_page(name: str) -> dict[str, str]:
    table = PAGE.read_text().partition(f"`{name}`:\n\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", table, re.MULTILINE))


def _in_the_tree(folder: Path) -> set[str]:
    entries = (entry for entry in folder.iterdir() if entry.name not in {"__init__.py", "__pycache__"})
    return {f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries}


def test_the_page_describes_each_entry_of_the_tests_folder() -> None:
    descriptions = _on_the_page("tests")
    assert descriptions.keys() == _in_the_tree(ROOT / "tests")
    assert all(len(line) > 10 for line in descriptions.values())


def test_files_and_folders_named_on_the_page_exist() -> None:
    """Every ``folder/`` and ``file.py`` in the text."""
    names = set(re.findall(r"`((?:[\w.]+/)*\w+(?:\.py|/))`", PAGE.read_text()))
    tops = [*PACKAGES.values(), ROOT / "tests"]
    paths = [f"/{path.relative_to(ROOT)}{'/' * path.is_dir()}" for top in tops for path in top.rglob("*")]
    missing = {name for name in names if not any(path.endswith(f"/{name}") for path in paths)}
    assert len(names) > 50
    assert missing <= {"proto/"}

"""Bundled third-party content and start-up code are documented."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "collector/pandaeval_collector"
_ROW = re.compile(r"^\| `([\w./-]+)` \|.*\| `([0-9a-f]{64})` \|$", re.MULTILINE)
TABLE = dict(_ROW.findall((ROOT / "SECURITY.md").read_text()))


@pytest.mark.parametrize("name", [*TABLE])
def test_bundled_files_have_the_hashes_listed_in_the_table(name: str) -> None:
    assert hashlib.sha256((PACKAGE / name).read_bytes()).hexdigest() == TABLE[name]


def test_the_table_lists_all_bundled_third_party_files() -> None:
    vendored = [*PACKAGE.rglob("vendor/uPlot*"), *PACKAGE.rglob("*.npz"), *PACKAGE.rglob("*.min.*")]
    assert {str(file.relative_to(PACKAGE)) for file in vendored} == TABLE.keys()


def test_no_unknown_file_runs_code_when_python_starts() -> None:
    script = ROOT / "deploy/locks/pth.py"
    listed = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert listed.returncode == 0, listed.stdout
    assert "UNKNOWN" not in listed.stdout


def test_an_unknown_startup_file_is_found(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "deploy/locks"))
    try:
        import pth  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    (tmp_path / "litellm_init.pth").write_text("import os")
    (tmp_path / "distutils-precedence.pth").touch()
    assert [file.name for file in pth.strangers({tmp_path})] == ["litellm_init.pth"]

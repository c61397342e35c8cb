"""Failed tests fail CI unless listed as unsteady."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_SCRIPT = _ROOT / ".ci/unsteady"
_TESTS = """
import pytest

@pytest.mark.parametrize("number", [1])
def test_second(number):
    pass

def test_never():
    raise ValueError
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout where ``test_second`` passes on retry."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / "test_some.py").write_text(_TESTS)
    (tmp_path / ".pytest_cache/v/cache").mkdir(parents=True)
    return tmp_path


def _again(checkout: Path, listed: str, *failed: str) -> tuple[int, str]:
    (checkout / ".ci/unsteady.txt").write_text(listed)
    (checkout / ".pytest_cache/v/cache/lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)))
    done = subprocess.run([sys.executable, _SCRIPT, "again"], cwd=checkout, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_listed_test_that_passes_on_retry_does_not_fail_ci(checkout: Path) -> None:
    code, output = _again(checkout, "# why\ntest_some.py::test_second  # the disk\n", "test_some.py::test_second[1]")
    assert code == 0
    assert "UNSTEADY" in output


@pytest.mark.slow
def test_a_listed_test_that_fails_twice_fails_ci(checkout: Path) -> None:
    assert _again(checkout, "test_some.py::test_never  # the disk\n", "test_some.py::test_never")[0] == 1


def test_a_failed_test_that_is_not_listed_fails_ci(checkout: Path) -> None:
    failed = ("test_some.py::test_second", "test_some.py::test_other")
    code, output = _again(checkout, "test_some.py::test_second  # the disk\n", *failed)
    assert (code, output.split()) == (1, ["FAILED:", "test_some.py::test_other"])


def test_a_failed_run_without_failed_tests_fails_ci(checkout: Path) -> None:
    assert _again(checkout, "")[0] == 1


def test_a_listed_test_without_a_reason_fails_ci(checkout: Path) -> None:
    code, output = _again(checkout, "test_some.py::test_second\n", "test_some.py::test_second")
    assert code == 1
    assert "reason" in output


def test_the_list_names_only_existing_tests() -> None:
    for line in (_ROOT / ".ci/unsteady.txt").read_text().splitlines():
        if not line.startswith("#"):
            path, _, name = line.partition("#")[0].strip().partition("::")
            assert f"def {name.rpartition('::')[2]}(" in (_ROOT / path).read_text()

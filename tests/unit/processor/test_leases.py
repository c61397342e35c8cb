"""Forks during shutdown or stamping: accounts, threads and locks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.mark.parametrize("what", ["shutdown", pytest.param("last shutdown", marks=pytest.mark.slow), "stamp"])
def test_a_fork_at_any_line_leaves_a_working_child(what: str) -> None:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-m", "support.forked_midway", what]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [], done.stderr

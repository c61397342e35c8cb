"""Imports and platform requirements at the start of a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_CAPTURE = _ROOT / "tests" / "golden" / "captures" / "pydantic_ai" / "good.otlp.jsonl"
_PROGRAM = """
import json, os, sys
from pandaeval_collector.cli import main
out, sys.stdout = sys.stdout, open(os.devnull, "w")
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
json.dump(sorted(sys.modules), out)
out.flush()
"""


def _imported(*arguments: str) -> list[str]:
    """Return the modules loaded by a command."""
    path = os.pathsep.join((str(_ROOT), str(_ROOT / "collector")))
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_help_imports_nothing_heavy() -> None:
    found = _imported("--help")
    assert not {"pydantic", "numpy", "google.protobuf", "grpc", "litellm"}.intersection(found)
    assert len([name for name in found if name.startswith("pandaeval")]) <= 25


def test_evaluate_imports_no_model_client_and_no_server() -> None:
    found = _imported("evaluate", str(_CAPTURE), "--format", "json")
    assert not {"litellm", "grpc", "starlette", "uvicorn", "pandaeval_collector.jobs.attempts"}.intersection(found)
    assert not [name for name in found if name.startswith(("pandaeval_collector.app", "pandaeval_lab.drill"))]
    assert len([name for name in found if name.startswith("pandaeval")]) <= 452


def test_the_command_starts_on_platforms_without_sighup() -> None:
    program = "import signal; del signal.SIGHUP; from pandaeval_collector.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout[:10]) == (0, "pandaeval "), done.stderr

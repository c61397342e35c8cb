"""The commands of docs/internals/interfaces.md lead to scores in Jaeger."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.jaeger import BINARY

_ROOT = Path(__file__).parents[2]
_PORTS = (4327, 4328, 4329, 14317, 16686)
_MAIN = '#!/bin/sh\nexec "{python}" -c "from pandaeval_collector.cli import main; main()" "$@"\n'


def _used(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.e2e
@pytest.mark.skipif(not BINARY.exists(), reason=f"needs {BINARY}: python tests/support/programs.py jaeger")
def test_documented_commands_show_a_first_score_in_jaeger(tmp_path: Path) -> None:
    if taken := [port for port in _PORTS if _used(port)]:
        pytest.skip(f"the commands use fixed ports, and something listens on {taken}")
    page = (_ROOT / "docs" / "internals" / "interfaces.md").read_text()
    block = re.search(r"^## From `pip install`.*?^```bash\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block
    lines = [line for line in block[1].splitlines() if not re.match(r"python3 -m venv|pip install", line)]
    assert len(lines) == 5
    for name in ("deploy", "docs"):
        (tmp_path / name).symlink_to(_ROOT / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    (programs / "pandaeval").write_text(_MAIN.format(python=sys.executable))
    (programs / "pandaeval").chmod(0o755)
    environ = os.environ | {
        "PATH": os.pathsep.join((str(programs), str(BINARY.parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    script = "\n".join(("trap 'kill $(jobs -p); wait' EXIT", *lines))
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=240
    )
    assert '"operationName":"✓ evaluate' in done.stdout, done.stdout + done.stderr

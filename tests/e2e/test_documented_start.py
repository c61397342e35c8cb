"""The bash blocks of docs/start/quickstart.md run in a fresh environment.

python -m pytest -m e2e tests/e2e/test_documented_start.py    # installs packages
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_QUICKSTART = _ROOT / "docs" / "start" / "quickstart.md"


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_the_quickstart_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", _QUICKSTART.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=_ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=tmp_path, input=archive, check=True)
    outside = {
        key: value for key, value in os.environ.items() if not key.startswith(("PANDAEVAL", "VIRTUAL", "PYTHON"))
    }
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(blocks)], cwd=tmp_path, env=outside, capture_output=True, text=True, timeout=840
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "sessions were handled correctly" in done.stdout
    assert (tmp_path / "agent.py").exists()

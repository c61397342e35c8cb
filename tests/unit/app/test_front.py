"""The front looks into no content, and loads nothing that does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NEVER = (
    *("pandaeval_otel.dialects", "pandaeval_otel.normal", "pandaeval_collector.analysis"),
    *("pandaeval_collector.scoring", "pandaeval_collector.judge", "numpy", "litellm", "mcp", "fastapi"),
)
IMPORTS = """
import sys
from pathlib import Path
from pandaeval_collector.cli import app, collector
from pandaeval_collector.cli._config import resolve_config
import pandaeval_collector.app.collector
resolve_config(Path(sys.argv[1]), on_this_machine=True, apart=True)
print(*sys.modules)
"""


def test_what_the_front_imports_looks_into_no_content(tmp_path: Path) -> None:
    """Also where the configuration names metrics, which another process looks up."""
    file = tmp_path / "pandaeval.yaml"
    file.write_text("metrics: {enabled: [tool_loop]}")
    ran = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTS, str(file)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert ran.returncode == 0, ran.stderr
    loaded = ran.stdout.split()
    assert "pandaeval_collector.pipeline.pipeline" in loaded
    assert [name for name in loaded if name.startswith(NEVER)] == []

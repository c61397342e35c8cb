"""The front's imports: no content code, no lab."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NEVER = (
    *("pandaeval_otel.dialects", "pandaeval_otel.normal", "pandaeval_collector.analysis"),
    *("pandaeval_collector.scoring", "pandaeval_collector.judge", "numpy", "litellm", "mcp", "fastapi"),
    "pandaeval_lab",
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

SCORING = """
import sys
from pathlib import Path
import pandaeval_collector.pipeline.line.main, pandaeval_collector.app.line_setup
import pandaeval_collector.app.judge_main, pandaeval_collector.app.reader_main
from pandaeval_collector.config import resolve
from pandaeval_collector.runs.settings import evaluator
evaluator(resolve(Path(sys.argv[1]), {}).config)
print(*sys.modules)
"""


def test_the_front_process_imports_no_content_code(tmp_path: Path) -> None:
    file = tmp_path / "pandaeval.yaml"
    file.write_text("metrics: {enabled: [tool_loop]}")
    loaded = _loaded(IMPORTS, file)
    assert "pandaeval_collector.pipeline.pipeline" in loaded
    assert [name for name in loaded if name.startswith(NEVER)] == []


def test_no_collector_process_imports_the_lab(tmp_path: Path) -> None:
    """Not even for a named trial metric."""
    file = tmp_path / "pandaeval.yaml"
    file.write_text("metrics: {enabled: [tool_correctness, trial.exit_code, agent_reliability]}")
    loaded = _loaded(SCORING, file)
    assert "pandaeval_collector.scoring.metrics.trace.tool_loop" in loaded
    assert [name for name in loaded if name.startswith("pandaeval_lab")] == []


def _loaded(code: str, file: Path) -> list[str]:
    """Return the modules loaded by this code."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code, str(file)], capture_output=True, text=True, cwd=file.parent, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()

"""The collector works without the package pandaeval_lab."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandaeval_lab":
            raise ModuleNotFoundError(name, name=name)

import importlib.util
original = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pandaeval_lab" else original(name, *more)
sys.meta_path.insert(0, Without())
"""
NAMES = """
from pandaeval_collector.cli._names import problems
from pandaeval_collector.config import Config, MetricsSection
print([each.message for each in problems(Config(metrics=MetricsSection(enabled=("tool_loop", "trial.exit_code"))))])
"""


HELP = """
from pandaeval_collector.cli import main
sys.argv = ["pandaeval", "-h"]
main()
"""


def _printed(program: str) -> str:
    ran = subprocess.run([sys.executable, "-c", WITHOUT + program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_metric_names_are_checked_without_the_lab() -> None:
    assert _printed(NAMES).count("unknown metric") == 1


def test_help_without_the_lab_lists_only_collector_commands() -> None:
    listed = {line.split()[0] for line in _printed(HELP).splitlines() if line.startswith("  ")}
    assert {"collector", "config", "store", "traces"} <= listed
    assert not listed & {"cli", "lab", "evaluate", "doctor"}

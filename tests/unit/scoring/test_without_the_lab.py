"""A collector starts where the lab was left out of its image."""

from __future__ import annotations

import subprocess
import sys

CHECK = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandaeval_lab":
            raise ModuleNotFoundError(name)

import importlib.util
original = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "pandaeval_lab" else original(name, *more)
sys.meta_path.insert(0, Without())
from pandaeval_collector.cli._names import problems
from pandaeval_collector.config import Config, MetricsSection
print([each.message for each in problems(Config(metrics=MetricsSection(enabled=("tool_loop", "trial.exit_code"))))])
"""


def test_names_of_metrics_are_checked_without_it() -> None:
    ran = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("unknown metric") == 1

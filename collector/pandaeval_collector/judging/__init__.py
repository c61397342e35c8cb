"""Running judge jobs: from the store's table to a model and back into the line."""

from pandaeval_collector.judging.canaries import Canaries
from pandaeval_collector.judging.canary_file import read_canaries
from pandaeval_collector.judging.checks import open_checks
from pandaeval_collector.judging.outcome import Patience
from pandaeval_collector.judging.runner import Runner
from pandaeval_collector.judging.setup import JudgeConfig, Limits, NoJudgeError, check_installed, open_caller

__all__ = [
    "Canaries",
    "JudgeConfig",
    "Limits",
    "NoJudgeError",
    "Patience",
    "Runner",
    "check_installed",
    "open_caller",
    "open_checks",
    "read_canaries",
]

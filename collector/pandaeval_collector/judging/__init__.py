"""Running judge jobs: from the store's table to a model and back into the line."""

from pandaeval_collector.judging.outcome import Patience
from pandaeval_collector.judging.runner import Runner
from pandaeval_collector.judging.setup import JudgeConfig, Limits, NoJudgeError, check_installed, open_caller

__all__ = ["JudgeConfig", "Limits", "NoJudgeError", "Patience", "Runner", "check_installed", "open_caller"]

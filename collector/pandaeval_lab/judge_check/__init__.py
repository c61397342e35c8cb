"""Tries a model as a judge before it is trusted: sessions and runs whose verdicts are known, the same runs in other
words and order, and runs that try to talk to the judge.

Imports replay.
"""

from pandaeval_lab.judge_check.questions import METRIC, CheckRun, canaries, planned
from pandaeval_lab.judge_check.sheet import Sheet, sheet

__all__ = ["METRIC", "CheckRun", "Sheet", "canaries", "planned", "sheet"]

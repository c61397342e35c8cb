"""Evaluates traces and sessions: runs metrics, identifies results, and prepares judge questions."""

from pandaeval_collector.scoring.evaluator.evaluator import Evaluator
from pandaeval_collector.scoring.evaluator.judged import PASSING, Question
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings, JudgeSettings
from pandaeval_collector.scoring.evaluator.units import trace_unit, turn_unit, unread

__all__ = [
    "PASSING",
    "Evaluator",
    "EvaluatorSettings",
    "JudgeSettings",
    "Question",
    "trace_unit",
    "turn_unit",
    "unread",
]

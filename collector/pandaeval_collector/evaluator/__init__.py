"""Evaluates traces and sessions: runs the metrics, identifies their results, and prepares questions for judges."""

from pandaeval_collector.evaluator.evaluator import Evaluator
from pandaeval_collector.evaluator.judged import PASSING, Question
from pandaeval_collector.evaluator.settings import EvaluatorSettings, JudgeSettings
from pandaeval_collector.evaluator.unit import trace_unit, turn_unit, unread

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

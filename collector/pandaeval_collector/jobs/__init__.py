"""Runs judge jobs: from the store's table to a model and back into the line; checks a model as a judge.

Imports analysis, base, judge, pipeline, receivers, scoring, store.
"""

from pandaeval_collector.jobs.attempts import Attempts
from pandaeval_collector.jobs.checks import open_checks
from pandaeval_collector.jobs.outcome import Patience, RecordBudgets
from pandaeval_collector.jobs.runner import SLOTS, Runner
from pandaeval_collector.jobs.setup import (
    Desks,
    JudgeConfig,
    Limits,
    NoJudgeError,
    StoredMemory,
    check_installed,
    open_caller,
)
from pandaeval_collector.jobs.shadow import open_shadow

__all__ = [
    "SLOTS",
    "Attempts",
    "Desks",
    "JudgeConfig",
    "Limits",
    "NoJudgeError",
    "Patience",
    "RecordBudgets",
    "Runner",
    "StoredMemory",
    "check_installed",
    "open_caller",
    "open_checks",
    "open_shadow",
]

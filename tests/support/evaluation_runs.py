"""Evaluation runs on a store, without a collector."""

from __future__ import annotations

import os

from pandaeval_collector.base.telemetry import Telemetry
from pandaeval_collector.config import Config
from pandaeval_collector.runs.engine import RunSurroundings
from pandaeval_collector.runs.manager import EvaluationRuns
from pandaeval_collector.store import Store
from pandaeval_collector.store.access import READER_TABLES, writing


def evaluation_runs(store: Store, config: Config | None = None) -> EvaluationRuns:
    """Return a store's runs, whose processes write directly."""
    answers = {"write": writing(store, READER_TABLES)}
    return EvaluationRuns(RunSurroundings(store, config or Config(), os.environ, answers), Telemetry())

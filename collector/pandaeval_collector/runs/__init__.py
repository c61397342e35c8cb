"""Evaluation runs: stored traces and sessions scored again, with other metrics or another judge."""

from pandaeval_collector.runs.judges import Judges, LiveJudge
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.runs.spec import RunSpec

__all__ = ["Judges", "LiveJudge", "RunSpec", "Runs"]

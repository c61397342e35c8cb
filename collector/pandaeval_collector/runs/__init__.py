"""Scores stored traces again, on request or on a schedule, and scores files with the same line.

Imports analysis, base, config, exporters, jobs, judge, pipeline, receivers, scoring, store, trials.
"""

from pandaeval_collector.runs.judges import Judges, LiveJudge
from pandaeval_collector.runs.manager import Runs
from pandaeval_collector.runs.spec import RunSpec

__all__ = ["Judges", "LiveJudge", "RunSpec", "Runs"]

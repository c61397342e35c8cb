"""Processes that understand traces for the line, so that the collector can use more than one core."""

from pandaeval_collector.pipeline.workers.pool import Workers
from pandaeval_collector.pipeline.workers.process import WorkerStartError
from pandaeval_collector.pipeline.workers.wire import WorkerSetup

__all__ = ["WorkerSetup", "WorkerStartError", "Workers"]

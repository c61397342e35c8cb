"""Processes that understand traces for the line, so that the collector can use more than one core."""

from pandaeval_collector.pipeline.workers.pool import Workers, WorkerSetup

__all__ = ["WorkerSetup", "Workers"]

"""Failures: results that name what went wrong, grouped by root cause so that one cause is read once."""

from pandaeval_collector.base.filters import SEVERITIES
from pandaeval_collector.store.failures.failure import HIGH, Failure, RootCause, failure_of, severity_of, worst_first

__all__ = ["HIGH", "SEVERITIES", "Failure", "RootCause", "failure_of", "severity_of", "worst_first"]

"""What can be set, read from file and environment, checked as a whole.

Imports base, exporters, receivers.
"""

from pandaeval_collector.config._load import (
    MetricNames,
    Resolved,
    check_embedder,
    check_machine,
    check_metrics,
    load,
    resolve,
    secret,
)
from pandaeval_collector.config._messages import closest, effective, masked, to_yaml
from pandaeval_collector.config._problem import ConfigError, Problem
from pandaeval_collector.config._sources import read_yaml
from pandaeval_collector.config._tree import Config
from pandaeval_collector.config.sections_in import LineSection
from pandaeval_collector.config.sections_scoring import MetricsSection

__all__ = [
    "Config",
    "ConfigError",
    "LineSection",
    "MetricNames",
    "MetricsSection",
    "Problem",
    "Resolved",
    "check_embedder",
    "check_machine",
    "check_metrics",
    "closest",
    "effective",
    "load",
    "masked",
    "read_yaml",
    "resolve",
    "secret",
    "to_yaml",
]

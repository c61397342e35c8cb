"""Read and validate the configuration from file and environment.

Imports base, exporters, kafka, receivers.
"""

from pandaeval_collector.config._load import Resolved as Resolved, load as load, resolve as resolve
from pandaeval_collector.config._machine import check_machine as check_machine, secret as secret
from pandaeval_collector.config._messages import closest as closest
from pandaeval_collector.config._problem import ConfigError as ConfigError, Problem as Problem
from pandaeval_collector.config._shown import effective as effective, masked as masked, to_yaml as to_yaml
from pandaeval_collector.config._sources import read_yaml as read_yaml
from pandaeval_collector.config._tree import Config as Config
from pandaeval_collector.config.metric_names import (
    MetricNames as MetricNames,
    check_embedder as check_embedder,
    check_metrics as check_metrics,
)
from pandaeval_collector.config.sections_in import LineSection as LineSection
from pandaeval_collector.config.sections_scoring import MetricsSection as MetricsSection

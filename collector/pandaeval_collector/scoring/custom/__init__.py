"""Custom metrics, made from a function, a class or a definition that a judge answers."""

from pandaeval_collector.scoring.custom.definition import Definition, LabelDefinition
from pandaeval_collector.scoring.custom.functions import judged, metric

__all__ = ["Definition", "LabelDefinition", "judged", "metric"]

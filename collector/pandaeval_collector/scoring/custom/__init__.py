"""Metrics of the user's own, in a few lines: a decorated function or class, or a definition that a judge answers.

:func:`metric` makes a metric of a function or a class; :func:`judged` makes one of a question, a scale or labels, and
criteria. A YAML file among ``metrics.modules`` holds definitions of the second kind (:mod:`.files`).
"""

from pandaeval_collector.scoring.custom.definition import Definition, LabelDefinition
from pandaeval_collector.scoring.custom.functions import judged, metric

__all__ = ["Definition", "LabelDefinition", "judged", "metric"]

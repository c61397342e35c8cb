"""The attribute names of instrumentations: each file reads one way of writing GenAI spans.

A dialect never raises and never decides alone: several may read one span (one that an OpenInference processor copied
its keys onto, say), and :func:`pandaeval_otel.normal.spans.normalize` takes each field from the first that states it.

Imports base, model.
"""

from pandaeval_otel.dialects import readers
from pandaeval_otel.dialects._reading import Dialect, Reading, dialects

__all__ = ["Dialect", "Reading", "dialects", "readers"]

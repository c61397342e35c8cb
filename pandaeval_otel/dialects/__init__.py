"""Attribute names of instrumentations: each file reads a format of GenAI spans.

A dialect never raises. Several dialects may read the same span. :func:`pandaeval_otel.normal.spans.normalize` takes
each field from the first dialect that states it.

Imports base, model.
"""

from pandaeval_otel.dialects import readers
from pandaeval_otel.dialects._reading import Dialect, Reading, dialects

__all__ = ["Dialect", "Reading", "dialects", "readers"]

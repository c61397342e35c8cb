"""What the author of a metric imports: the declaration of a metric, and what it is given to judge a subject by.

A metric's file makes a :class:`Metric` and names it ``METRIC``; :mod:`.registry` finds it there. Packages of other
people import these names from here, so they stay.
"""

from pandaeval_collector.scoring.metric.contexts import (
    EarlierOutput,
    SessionContext,
    SessionSignal,
    SessionView,
    Texts,
    TraceContext,
    TraceSummary,
    TurnContext,
)
from pandaeval_collector.scoring.metric.declaration import Metric, SessionMetric, SessionReads, TraceMetric, TurnMetric

__all__ = [
    "EarlierOutput",
    "Metric",
    "SessionContext",
    "SessionMetric",
    "SessionReads",
    "SessionSignal",
    "SessionView",
    "Texts",
    "TraceContext",
    "TraceMetric",
    "TraceSummary",
    "TurnContext",
    "TurnMetric",
]

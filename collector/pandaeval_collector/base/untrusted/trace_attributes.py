"""Our attributes on the spans of a trace."""

from __future__ import annotations

from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trace


def stated(trace: Trace, *names: str) -> list[str]:
    """Return each attribute's bounded value from the first span with it, or ``""``. ``0`` counts."""
    held = [span.attributes for span in trace.spans if span.attributes]
    texts = ((str(each[name]) for each in held if each.get(name) is not None) for name in names)
    return [bounded(next(filter(None, values), "")) for values in texts]

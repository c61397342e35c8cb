"""What the spans of a trace state about it by an attribute of ours."""

from __future__ import annotations

from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trace


def stated(trace: Trace, name: str) -> str:
    """What the first span with this attribute says, as a bounded name: ``0`` is one, an empty text is none. ``""``:
    nothing."""
    for span in trace.spans:
        said = span.attributes.get(name) if span.attributes else None
        if said is not None and (text := str(said)):
            return bounded(text)
    return ""

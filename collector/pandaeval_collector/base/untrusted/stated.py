"""What the spans of a trace state about it by an attribute of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pandaeval_otel.base.names import bounded
from pandaeval_otel.model import Trace


def stated(trace: Trace, *names: str) -> list[str]:
    """Returns what the first span with each of these attributes says, as a bounded name: ``0`` is one, an empty text is
    none. ``""``: nothing."""
    with_attributes = [span.attributes for span in trace.spans if span.attributes]
    return [_first(with_attributes, name) for name in names] if with_attributes else [""] * len(names)


def _first(stated: Sequence[Mapping[str, Any]], name: str) -> str:
    for attributes in stated:
        said = attributes.get(name)
        if said is not None and (text := str(said)):
            return bounded(text)
    return ""

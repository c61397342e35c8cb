"""What a metric is: a named question about a trace or a session, as a value that discovery finds.

``@trace_metric(...)`` and ``@session_metric(...)`` turn a function into a :class:`Metric`. They register nothing:
the value is found because it stands in a module of ``pandaeval_collector.metrics``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.embedding import Bands
from pandaeval_collector.score import Finding
from pandaeval_otel.model import Trace

S = TypeVar("S")
C = TypeVar("C")


class Vectors(Protocol):
    """Vectors of the texts that a metric asked for, computed in one batch for many traces."""

    embedder_id: str
    bands: Bands | None

    def __getitem__(self, text: str) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class TraceContext:
    """What a trace metric may look at besides the trace: vectors of the texts it declared, and its own threshold."""

    vectors: Vectors
    threshold: float


@dataclass(frozen=True, slots=True)
class Metric(Generic[S, C]):
    """A question about a subject. ``key`` (``level.name``) is unique; ``version`` changes whenever a score could.

    ``kind``: ``embedding | llm | code | math``. ``threshold``: the default, or a function of the embedder's bands.
    ``texts``: the texts that have to be embedded before ``evaluate`` is called. ``needs`` is for people.
    """

    level: str
    name: str
    kind: str
    version: str
    threshold: float
    evaluate: Callable[[S, C], Finding | None]
    question: str
    needs: str = ""
    texts: Callable[[S], Sequence[str]] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.level}.{self.name}"


TraceMetric = Metric[Trace, TraceContext]

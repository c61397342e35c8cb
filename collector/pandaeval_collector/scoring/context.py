"""The subjects of session metrics, and the contexts that metrics receive with their subject."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, Bands, KnownShare
from pandaeval_collector.analysis.rules.grounding.before import EarlierContent
from pandaeval_collector.analysis.stats.similarity import Direction, Vector
from pandaeval_collector.analysis.stats.topic import content_tokens

APPLIES = "applies"
"""Metadata key of an unscored result. False: the metric does not apply to the trace, so the session does not miss
it."""


# No code changes these objects. Frequent objects are not frozen, because creating a frozen object takes four times as
# long.
@dataclass(slots=True)
class Texts:
    """The embedded texts of a batch of traces.

    One thread.

    ``rows[text]``: float32 of shape (dim,), with length 1 or all zeros. ``chunked``: texts embedded in parts. ``lost``:
    the error raised if there are no vectors. ``known``: share of a text that the embedder knows.
    """

    rows: Mapping[str, NDArray[np.float32]]
    chunked: Collection[str]
    embedder: str
    bands: Bands | None
    lost: Exception | None = None
    known: Callable[[str], KnownShare] = lambda text: ALL_KNOWN
    _directions: dict[str, Direction] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    def direction(self, text: str) -> Direction:
        """Return the direction of the text's vector; false if the vector is zero.

        Raises ``lost``, or ``KeyError`` for a text that no metric requested.
        """
        found = self._directions.get(text)
        if found is None:
            if self.lost is not None:
                raise self.lost
            found = self._directions[text] = Direction(self.rows[text])
        return found

    def know(self, text: str, direction: Direction, words: frozenset[str]) -> None:
        """Add a text that was embedded earlier, such as a previous answer."""
        self._directions[text], self._words[text] = direction, words

    def words(self, text: str) -> frozenset[str]:
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = content_tokens(text)
        return found


@dataclass(slots=True)
class EarlierOutput:
    """A previous answer of the same agent in the session.

    ``index``: 0-based position of its trace. ``asked``: content words of the question.
    """

    trace_id: str
    index: int
    embedding: Vector
    tokens: frozenset[str]
    asked: frozenset[str] = frozenset()


@dataclass(slots=True)
class TraceContext:
    """The context of a trace metric.

    ``threshold``: in the metric's scale. ``earlier``: oldest first, only for metrics that read ``answers``; their
    trace has no spans or messages. ``end_tokens``: answers that declare the end. ``before``: content of earlier traces
    for metrics with ``unsettled``, or ``None``. ``asked_again``: the user requested a repetition. ``asked``: content
    words of the question. ``changed``: a tool changed something. ``tried``: a call failed. ``failing``: span ids of
    failures by metric, for metrics with ``explains``.
    """

    texts: Texts
    threshold: float
    earlier: tuple[EarlierOutput, ...] = ()
    end_tokens: tuple[str, ...] = ()
    before: EarlierContent | None = None
    asked_again: bool = False
    asked: frozenset[str] = frozenset()
    changed: bool = False
    tried: bool = False
    failing: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(slots=True)
class TurnContext:
    """The context of a turn metric. ``threshold``: in the metric's scale."""

    threshold: float


@dataclass(frozen=True, slots=True)
class SessionSignal:
    """A trace metric's result for session metrics.

    ``value``: the score, or 1.0, if the result counts. ``said``: reason of a failure. ``lost``: failed tool. ``open``:
    unanswered call. ``older``: of an earlier revision.
    """

    outcome: str
    value: float | None = None
    why: str | None = None
    said: str = ""
    lost: str = ""
    older: bool = False
    open: str = ""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A decided trace for session metrics.

    ``crashed``: the outermost agent failed without a final output. ``signals``: by metric name. ``done``: tools that
    changed something, and answered calls of other traces.
    """

    trace_id: str
    digest: str
    crashed: bool
    signals: Mapping[str, SessionSignal]
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionView:
    """The summaries of a session's decided traces, ordered by (earliest span start, trace id)."""

    session_id: str
    traces: tuple[TraceSummary, ...]


@dataclass(frozen=True, slots=True)
class SessionContext:
    """The context of a session metric.

    ``enabled``: trace metrics that run. ``weights``: overrides by signal. ``extra_signals``: further signals of ours.
    ``judged``: whether results of a judge are signals.
    """

    threshold: float
    enabled: frozenset[str]
    weights: Mapping[str, float]
    extra_signals: tuple[str, ...]
    judged: bool = False

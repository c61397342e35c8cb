"""The subjects of metrics that are no trace, and what a metric is given besides its subject."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, Bands, KnownShare
from pandaeval_collector.analysis.rules.grounding.before import Before
from pandaeval_collector.analysis.stats.similarity import Direction, Vector
from pandaeval_collector.analysis.stats.topic import content_tokens

APPLIES = "applies"
"""Key of the metadata of an unscored result: false where the metric has nothing to say on such a trace, so that its
session does not miss it."""


# Nobody changes these objects. Those that there are many of are not declared frozen: setting the fields of a frozen
# object takes four times as long.
@dataclass(slots=True)
class Texts:
    """The vectors of the texts that metrics asked for, computed in one batch for many traces. One thread.

    ``rows[text]``: shape (dim,), float32, length 1 or all zeros. ``chunked``: the texts that were embedded in parts.
    ``embedder``, ``bands``: the id of the embedder and what its cosines mean. ``lost``: why there are no vectors; a
    metric that asks for one gets this exception. ``known``: how much of a text the embedder knows."""

    rows: Mapping[str, NDArray[np.float32]]
    chunked: Collection[str]
    embedder: str
    bands: Bands | None
    lost: Exception | None = None
    known: Callable[[str], KnownShare] = lambda text: ALL_KNOWN
    _directions: dict[str, Direction] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    def direction(self, text: str) -> Direction:
        """Return the direction of the text's vector, false for a row of zeros; computed once. Raises ``lost`` where
        there are no vectors, and ``KeyError`` for a text that no metric asked to embed."""
        found = self._directions.get(text)
        if found is None:
            if self.lost is not None:
                raise self.lost
            found = self._directions[text] = Direction(self.rows[text])
        return found

    def know(self, text: str, direction: Direction, words: frozenset[str]) -> None:
        """Add the direction and the words of a text that was embedded before, such as an earlier answer."""
        self._directions[text], self._words[text] = direction, words

    def words(self, text: str) -> frozenset[str]:
        """Return the content words of the text; computed once."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = content_tokens(text)
        return found


@dataclass(slots=True)
class EarlierOutput:
    """An answer that the same agent gave earlier in the session; ``index``: 0-based position of its trace there;
    ``asked``: the content words of the question."""

    trace_id: str
    index: int
    embedding: Vector
    tokens: frozenset[str]
    asked: frozenset[str] = frozenset()


@dataclass(slots=True)
class TraceContext:
    """What a trace metric may look at besides the trace. ``threshold``: in the metric's own scale. ``earlier``: oldest
    first, for metrics that read ``answers``; empty for the others. Those with it see the trace without its spans and
    messages: it may have been decided long ago. ``end_tokens``: answers by which agents declare that they are done.
    ``before``: what the earlier traces of the session held, for metrics with ``unsettled``; ``None`` where that is not
    known, or there is no session. ``asked_again``: the user asked for a repeat or a second version of what was said;
    ``asked``: the content words of the question; ``changed``: a tool changed something in this run. ``failing``:
    the spans that failing results name, by metric, for metrics with ``explains``."""

    texts: Texts
    threshold: float
    earlier: tuple[EarlierOutput, ...] = ()
    end_tokens: tuple[str, ...] = ()
    before: Before | None = None
    asked_again: bool = False
    asked: frozenset[str] = frozenset()
    changed: bool = False
    failing: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(slots=True)
class TurnContext:
    """What a turn metric may look at besides the turn. ``threshold``: in the metric's own scale."""

    threshold: float


@dataclass(frozen=True, slots=True)
class SessionSignal:
    """The result of one of a trace's metrics as session metrics see it: ``value`` only where ``outcome`` is
    ``scored`` and the score counts for the session; ``said``: the reason of a result that failed; ``lost``: the tool
    whose failure it is about; ``open``: the call that it left without an answer; ``older``: it is about an older
    revision, as no judge was asked about this one yet."""

    outcome: str
    value: float | None = None
    why: str | None = None
    said: str = ""
    lost: str = ""
    older: bool = False
    open: str = ""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A decided trace as its session sees it. ``crashed``: the outermost agent failed and there is no final output;
    ``signals``: by the name of the metric; ``done``: the tools that change something, and did, and the
    calls of other traces that it answers."""

    trace_id: str
    digest: str
    crashed: bool
    signals: Mapping[str, SessionSignal]
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session: the summaries of its decided traces, ordered by (earliest span start, trace id)."""

    session_id: str
    traces: tuple[TraceSummary, ...]


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session metric may look at besides the session. ``enabled``: names of the trace metrics that are switched
    on; ``weights``: overrides of the signal weights; ``extra_signals``: names of our own signals that count as well;
    ``judged``: a judge is configured."""

    threshold: float
    enabled: frozenset[str]
    weights: Mapping[str, float]
    extra_signals: tuple[str, ...]
    judged: bool = False

"""What the author of a metric imports: the declaration of a metric, which is a value, and what it is given to judge a
subject by.

A metric's file makes a :class:`Metric` and names it ``METRIC``; :mod:`pandaeval_collector.scoring.registry` finds it
there. Packages of other people import these names from here, so they stay.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from pandaeval_collector.analysis.embedding import ALL_KNOWN, Bands, KnownShare
from pandaeval_collector.analysis.rules.grounding.before import Before
from pandaeval_collector.analysis.stats.similarity import Direction, Vector
from pandaeval_collector.analysis.stats.topic import content_tokens
from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.rubric import QuestionPart, Rubric, rubric_of
from pandaeval_collector.judge.turns import TurnView
from pandaeval_otel.model import Trace


# What a metric is given besides its subject, and a session as its metrics see it.
#
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
        """Returns the direction of the text's vector, false for a row of zeros; computed once. Raises ``lost`` where
        there are no vectors, and ``KeyError`` for a text that no metric asked to embed."""
        found = self._directions.get(text)
        if found is None:
            if self.lost is not None:
                raise self.lost
            found = self._directions[text] = Direction(self.rows[text])
        return found

    def know(self, text: str, direction: Direction, words: frozenset[str]) -> None:
        """Adds the direction and the words of a text that was embedded before, such as an earlier answer."""
        self._directions[text], self._words[text] = direction, words

    def words(self, text: str) -> frozenset[str]:
        """Returns the content words of the text; computed once."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = content_tokens(text)
        return found


APPLIES = "applies"
"""Key of the metadata of an unscored result: false where the metric has nothing to say on such a trace, so that its
session does not miss it."""


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


# What has to hold of a metric for it to be run at all, whoever wrote it.
LEVELS = ("trace", "turn", "session", "trial", "task")
LAYERS = ("reasoning", "action", "outcome")
KINDS = ("embedding", "llm", "code", "math")
_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")
_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")


def check(metric: Any) -> None:
    """Raises ``ValueError``, saying what to write instead, for a metric that would not run, or that would break the
    results of others."""
    if metric.level not in LEVELS:
        raise ValueError(f"level {metric.level!r} is not scored in this version; write {' or '.join(LEVELS)}")
    if not (isinstance(metric.name, str) and _NAME.fullmatch(metric.name)):
        raise ValueError(f"name {metric.name!r}: write small letters, digits and single underscores, as in tool_loop")
    if metric.kind not in KINDS:
        raise ValueError(f"kind {metric.kind!r} is not one of {', '.join(KINDS)}")
    if not (isinstance(metric.version, str) and metric.version):
        raise ValueError('version: write a text, as in "1"')
    if not callable(metric.evaluate):
        raise ValueError("evaluate is no function")
    if (metric.kind == "llm") != (metric.ask is not None):
        raise ValueError("ask and kind llm go together: give both or neither")
    if metric.kind == "llm" and metric.reads is not None:
        raise ValueError("reads: what a judge is shown of the session it sees anyway")
    if (metric.unsettled is not None) != (metric.reads is not None and metric.reads.again):
        raise ValueError("unsettled and earlier traces that are read again go together: give both or neither")
    if metric.level == "trial" and metric.layer not in LAYERS:
        raise ValueError(f"layer {metric.layer!r}: a metric of level trial has one of {', '.join(LAYERS)}")
    if metric.signals and metric.level != "session":
        raise ValueError("signals: only a metric of level session reads the results of others")
    threshold = metric.threshold(None) if callable(metric.threshold) else metric.threshold
    least, most = ends(metric.scale)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not least <= threshold <= most:
        raise ValueError(f"threshold {threshold!r} does not lie in {least:g}..{most:g}")
    if metric.level == "turn" and (metric.texts is not None or metric.kind == "embedding"):
        raise ValueError("texts: nothing is embedded for a metric of level turn")
    try:
        orjson.dumps(metric.settings, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        raise ValueError(f"settings are part of a result's id and have to be JSON: {error}") from error


def ends(scale: str) -> tuple[float, float]:
    """Returns the worst and best end of a scale such as ``"1-5"``; ``""`` is 0..1. Raises ``ValueError`` for others."""
    if not scale:
        return 0.0, 1.0
    found = _SCALE.fullmatch(scale)
    if found is None or float(found[1]) >= float(found[2]):
        raise ValueError(f'scale {scale!r}: write its worst and its best end, as in "1-5", or leave it out for 0..1')
    return float(found[1]), float(found[2])


S = TypeVar("S")
C = TypeVar("C")

Threshold = float | Callable[[Bands | None], float]


@dataclass(frozen=True, slots=True)
class SessionReads:
    """Which other traces of its session a metric of level trace reads. Whenever one of them changes, it is evaluated
    anew. ``earlier``: so many before it. ``answers``: of these, the newest in which the same agent had answered before
    the trace began (``TraceContext.earlier``). ``later``: so many after it, which may make up for a failure or answer a
    call."""

    earlier: int = 0
    later: int = 0
    answers: bool = False

    @property
    def again(self) -> bool:
        """Whether the trace is read again with what earlier ones held (``TraceContext.before``)."""
        return self.earlier > 0 and not self.answers


@dataclass(frozen=True, slots=True)
class Metric(Generic[S, C]):
    """A question about a subject.

    The level names the subject and the context that ``evaluate`` is called with: ``trace``: a
    :class:`pandaeval_otel.model.Trace` and a :class:`TraceContext`; ``turn``: a
    :class:`pandaeval_collector.judge.turns.TurnView` and a :class:`TurnContext`; ``session``: a :class:`SessionView`
    and a :class:`SessionContext`, or, with kind ``llm``, a :class:`pandaeval_collector.judge.turns.Conversation` once
    the session closes; ``trial``: a :class:`pandaeval_lab.cases.Trial` and a
    :class:`pandaeval_lab.cases.TrialContext`.

    Making one raises ``ValueError`` for what could not be run.
    """

    level: str
    name: str
    kind: str
    """``embedding | llm | code | math``. With ``llm``, a judge is asked."""
    version: str
    """Changes whenever a score could: it is part of a result's id."""
    threshold: Threshold
    """The default of the least score that passes, in ``scale``; or a function that gives it for an embedder's bands."""
    question: str
    """For people, one line."""
    needs: str
    """For people: what has to be captured."""
    evaluate: Callable[[S, C], Finding | None]
    """Pure; runs on the line's thread. What it raises becomes ``unscored(metric_error)``. ``None``: no result. With
    kind ``llm`` it says what needs no model (nothing was captured, say), and ``None`` means that ``ask`` is awaited
    later."""
    texts: Callable[[S], Sequence[str]] | None = None
    """What has to be embedded before ``evaluate`` is called."""
    reads: SessionReads | None = None
    """Of level trace: which other traces of its session it reads."""
    unsettled: Callable[[S, Finding | None], bool] | None = None
    """Of level trace: whether a finding could be another one with what the session's earlier traces held. If so it is
    evaluated again, with that (``TraceContext.before``), and whenever that changes."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What else a score depends on; JSON. Part of a result's id."""
    calibrated: str | None = None
    """The key, in a score's metadata, of the value on a scale that does not depend on the embedder. Session metrics see
    that value unless ``session.coherence_signal`` is ``raw``."""
    sure: str | None = None
    """The key, in a score's metadata, of a mark: true where a low score is sure. With ``session.coherence_signal:
    sure`` session metrics see marked scores alone."""
    signals_failures_only: bool = False
    """Session metrics see its score only where that fails its threshold."""
    explains: bool = False
    """Of level trace, without a judge: its results explain a failure, and neither pass nor fail. It is evaluated last,
    where another metric fails the trace (``context.failing``)."""
    of_steps: bool = False
    """Whether it is asked about a single step of a run whose other steps are traces of their own
    (:attr:`pandaeval_otel.model.Trace.is_step`)."""
    ask: Callable[[S, Judge], Awaitable[Finding | None]] | None = None
    """Of kind ``llm``: asks a judge that has read the trace. Runs on an event loop and must not block it."""
    asked_by_session: bool = False
    """Of level trace, kind ``llm``: a session's own metric asks the same, so it is asked about traces of sessions only
    with ``judge.correctness: trace``."""
    rubrics: tuple[Rubric[Any], ...] = ()
    """All that ``ask`` may ask, extractions first, its own question last; so people can read them. Those of ``part``
    by themselves, where they are left out."""
    unscored: tuple[Why, ...] = ()
    """Every why that ``evaluate`` or ``ask`` says; others are said around the metric."""
    signals: tuple[str, ...] = ()
    """Of level session: the trace metrics, by name, whose results it reads. Those that need no judge run wherever it
    runs; unless they are enabled themselves, their results go nowhere else."""
    layer: str = ""
    """Of level trial, which layer of an agent it looks at: ``reasoning | action | outcome``."""
    scale: str = ""
    """The scale of ``threshold`` and of ``Score.raw``, its worst and its best end, as ``"1-5"``; ``""``: 0..1."""
    applies: Callable[[S], bool] | None = None
    """Of kind ``llm``, levels turn and session: whether it is asked of a subject at all."""
    by_code: Callable[[S], Score | None] | None = None
    """Of the same: what code alone says where no judge is asked, or none answers; ``None``: nothing."""
    part: QuestionPart[Any] | None = None
    """Its question, where it can share a call with others about the same trace or turn."""
    model: str | None = None
    """The judge's model, unless ``judge.models`` names another."""
    about: str = ""
    """The metric at length, for people, instead of the docstring of the module of ``evaluate``."""
    key: str = field(init=False, repr=False, compare=False)
    """``level.name``, unique."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.level}.{self.name}")
        if self.part is not None and not self.rubrics:
            object.__setattr__(self, "rubrics", tuple(rubric_of((each,)) for each in (*self.part.needs, self.part)))
        check(self)

    @property
    def asks(self) -> str:
        """The name of the question that gives its verdict."""
        own = self.part or (self.rubrics[-1] if self.rubrics else self)
        return own.name

    @property
    def needs_session(self) -> bool:
        """Whether it compares the answers of a session, so that it says nothing of a trace without one."""
        return self.reads is not None and self.reads.answers

    def threshold_for(self, bands: Bands | None) -> float:
        """Returns the default threshold with an embedder of these bands."""
        return self.threshold(bands) if callable(self.threshold) else self.threshold


TraceMetric = Metric[Trace, TraceContext]
TurnMetric = Metric[TurnView, TurnContext]
SessionMetric = Metric[SessionView, SessionContext]

"""The declarations of metrics by level, and all names that a metric's author imports.

Assign a metric to ``METRIC`` in its module. External packages import these names, so they are stable.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, get_args

import orjson
from typing_extensions import TypeVar

from pandaeval_collector.analysis.embedding import Bands
from pandaeval_collector.base.score import Finding, Score, Why, ends
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.judge.rubric import QuestionPart, Rubric, rubric_of
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.context import (
    APPLIES,
    EarlierOutput,
    SessionContext,
    SessionSignal,
    SessionView,
    Texts,
    TraceContext,
    TraceSummary,
    TurnContext,
)
from pandaeval_otel.model import Trace

__all__ = [
    "APPLIES",
    "EarlierOutput",
    "JudgedMetric",
    "JudgedSessionMetric",
    "JudgedTraceMetric",
    "JudgedTrialMetric",
    "JudgedTurnMetric",
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
    "TrialMetric",
    "TurnContext",
    "TurnMetric",
]
_NAME = re.compile(r"[a-z](?:_?[a-z0-9])*")
_LEADING = ("level", "name", "kind", "version", "threshold", "question", "needs", "evaluate")
"""The fields that ``Metric(…)`` takes by position."""
S = TypeVar("S", default=Any)
C = TypeVar("C", default=Any)
Threshold = float | Callable[[Bands | None], float]
Layer = Literal["reasoning", "action", "outcome"]


class _ByLevel(type):
    def __call__(cls, *values: Any, **fields: Any) -> Any:
        if cls is not Metric:
            return super().__call__(*values, **fields)
        fields |= zip(_LEADING, values, strict=False)
        level, kind = fields.pop("level", None), fields.get("kind")
        if level not in _CLASSES:
            raise ValueError(f"level {level!r} is not scored in this version; write {' or '.join(_CLASSES)}")
        made, judged = _CLASSES[level]
        if kind == "llm":
            made = judged
            del fields["kind"]
        # Empty fields of another class are allowed.
        known = made.__dataclass_fields__
        try:
            return made(**{name: value for name, value in fields.items() if value or name in known})
        except TypeError as error:
            raise ValueError(f"a metric of level {level} and kind {kind}: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Metric(Generic[S, C], metaclass=_ByLevel):
    """A question about a subject.

    ``Metric(level=…, kind=…, …)`` makes an object of the class for this level and kind. Raises ``ValueError`` for an
    invalid field.
    """

    level: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]] = ("embedding", "code", "math")
    name: str
    kind: str = "code"
    """One of ``kinds``."""
    version: str
    """Part of a result's id. Raise it with each change that can change a score."""
    threshold: Threshold
    """Default of the lowest passing score, in ``scale``, or a function that returns it for an embedder's bands."""
    question: str
    """The metric's question for people, in one line."""
    needs: str
    """Content that must be captured, for people."""
    evaluate: Callable[[S, C], Finding | None]
    """A pure function. An exception becomes ``unscored(metric_error)``. ``None``: no result."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Other JSON values on which a score depends. Part of a result's id."""
    unscored: tuple[Why, ...] = ()
    """Reasons that the metric's own functions return. The evaluator adds other reasons."""
    scale: str = ""
    """Scale of ``threshold`` and ``Score.raw``, from worst to best, such as ``"1-5"``; ``""``: 0..1."""
    about: str = ""
    """Full description for people. Default: the docstring of the module of ``evaluate``."""

    if TYPE_CHECKING:

        def __init__(
            self,
            level: str,
            name: str,
            kind: str,
            version: str,
            threshold: Threshold,
            question: str,
            needs: str,
            evaluate: Callable[[S, C], Finding | None],
            **fields: Any,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise ValueError(f"name {self.name!r}: write small letters, digits and single underscores, as in tool_loop")
        if self.kind not in self.kinds:
            raise ValueError(f"kind {self.kind!r} is not one of {', '.join(self.kinds)}")
        if not (isinstance(self.version, str) and self.version):
            raise ValueError('version: write a text, as in "1"')
        if not callable(self.evaluate):
            raise ValueError("evaluate: write a function of the subject and the context")
        layer = getattr(self, "layer", "outcome")
        if layer not in get_args(Layer):
            raise ValueError(f"layer {layer!r}: a metric of level trial has one of {', '.join(get_args(Layer))}")
        threshold = self.threshold_for(None)
        least, most = ends(self.scale)
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not least <= threshold <= most:
            raise ValueError(f"threshold {threshold!r} does not lie in {least:g}..{most:g}")
        try:
            orjson.dumps(self.settings, option=orjson.OPT_SORT_KEYS | orjson.OPT_SERIALIZE_NUMPY)
        except TypeError as error:
            raise ValueError(f"settings are part of a result's id and have to be JSON: {error}") from error

    @property
    def needs_session(self) -> bool:
        """Whether traces without a session have no result."""
        return self.level == "session"

    @cached_property
    def key(self) -> str:
        """``level.name``, unique."""
        return f"{self.level}.{self.name}"

    def threshold_for(self, bands: Bands | None) -> float:
        return self.threshold(bands) if callable(self.threshold) else self.threshold


@dataclass(frozen=True, kw_only=True)
class JudgedMetric(Metric[S, C]):
    """A metric that a judge answers, if ``evaluate`` returns ``None``. Then ``ask`` runs later."""

    kinds = ("llm",)
    kind: str = field(default="llm", init=False)
    ask: Callable[[Any, Judge], Awaitable[Finding | None]]
    """Asks a judge that has read the trace. Runs on an event loop and must not block it."""
    rubrics: tuple[Rubric, ...] = ()
    """All questions of ``ask``, for people: extractions first, its own question last. Default: the questions of
    ``part``."""
    part: QuestionPart | None = None
    """The question, if it can share a call with other questions about the same trace or turn."""
    model: str | None = None
    """The judge's model, unless ``judge.models`` names another."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.part is not None and not self.rubrics:
            rubrics = tuple(rubric_of((part,)) for part in (*self.part.needs, self.part))
            object.__setattr__(self, "rubrics", rubrics)

    @property
    def asks(self) -> str:
        """The name of the question with its verdict."""
        own = self.part or (self.rubrics[-1] if self.rubrics else self)
        return own.name


def answered_with(metric: JudgedMetric, others: Iterable[JudgedMetric]) -> list[str]:
    """Return the keys of all metrics that the question of ``metric`` answers."""
    return [metric.key, *(each.key for each in others if (each.level, each.asks) == (metric.level, metric.asks))]


@dataclass(frozen=True, slots=True)
class SessionReads:
    """The other traces that a trace metric reads.

    If any of them changes, the metric runs again.

    ``earlier``, ``later``: numbers of traces. ``answers``: read only earlier traces that the same agent answered before
    this trace began. ``unsettled``: returns whether earlier content could change a finding.
    """

    earlier: int = 0
    later: int = 0
    answers: bool = False
    unsettled: Callable[[Trace, Finding | None], bool] | None = None


@dataclass(frozen=True, kw_only=True)
class TraceMetric(Metric[Trace, TraceContext]):
    """A metric of a trace, without a judge."""

    level = "trace"

    texts: Callable[[Trace], Sequence[str]] | None = None
    """Returns the texts to embed before ``evaluate`` runs."""
    reads: SessionReads | None = None
    """Which other traces of the session it reads."""
    calibrated: str | None = None
    """Metadata key of a value that does not depend on the embedder. Session metrics ignore results without this value,
    unless a result fails or the signal is ``raw``."""
    signal: str = ""
    """Key of the section ``session`` that selects the scores for session metrics. ``sure``: scores of failing results,
    and 1.0 for others. ``raw``: every score."""
    signals_failures_only: bool = False
    """Whether session metrics read only failing scores."""
    explains: bool = False
    """Whether the results explain a failure, and neither pass nor fail. The metric runs last, if another metric fails
    the trace (``context.failing``)."""
    of_steps: bool = False
    """Whether the metric runs on a trace that is a single step of a run
    (:attr:`pandaeval_otel.model.Trace.is_step`)."""

    @property
    def needs_session(self) -> bool:
        return self.reads is not None and self.reads.answers


@dataclass(frozen=True, kw_only=True)
class JudgedTraceMetric(JudgedMetric[Trace, TraceContext]):
    level = "trace"

    asked_by_session: bool = False
    """A session metric has the same question, so traces of sessions get it only with ``judge.correctness: trace``."""


@dataclass(frozen=True, kw_only=True)
class TurnMetric(Metric[TurnView, TurnContext]):
    """A metric of a turn, without a judge."""

    level, kinds = "turn", ("code", "math")

    applies: Callable[[TurnView], bool] | None = None
    """Returns whether the metric applies to a turn."""


@dataclass(frozen=True, kw_only=True)
class JudgedTurnMetric(JudgedMetric[TurnView, TurnContext]):
    level = "turn"

    applies: Callable[[TurnView], bool] | None = None
    """Returns whether the question applies to a turn."""
    by_code: Callable[[TurnView], Score | None] | None = None
    """Returns the score by code if no judge answers; ``None``: no score."""


@dataclass(frozen=True, kw_only=True)
class SessionMetric(Metric[SessionView, SessionContext]):
    """A metric of a session, without a judge."""

    level = "session"

    signals: tuple[str, ...] = ()
    """Names of the trace metrics whose results the metric reads; empty: all. Metrics without a judge run for it even if
    they are disabled, but then their results are not stored."""


@dataclass(frozen=True, kw_only=True)
class JudgedSessionMetric(JudgedMetric[SessionView, SessionContext]):
    """A judged metric of a closing session.

    ``ask`` gets a :class:`pandaeval_collector.judge.conversation.Conversation`.
    """

    level = "session"

    ask: Callable[[Conversation, Judge], Awaitable[Finding | None]]


@dataclass(frozen=True, kw_only=True)
class TrialMetric(Metric):
    """A metric of a :class:`pandaeval_lab.cases.Trial`, with a :class:`pandaeval_lab.cases.TrialContext`."""

    level = "trial"

    layer: Layer
    """Which layer of an agent it looks at."""


@dataclass(frozen=True, kw_only=True)
class JudgedTrialMetric(JudgedMetric):
    level = "trial"

    layer: Layer
    """Which layer of an agent it looks at."""


_CLASSES: Mapping[str, tuple[type[Metric], type[Metric]]] = {
    "trace": (TraceMetric, JudgedTraceMetric),
    "turn": (TurnMetric, JudgedTurnMetric),
    "session": (SessionMetric, JudgedSessionMetric),
    "trial": (TrialMetric, JudgedTrialMetric),
}

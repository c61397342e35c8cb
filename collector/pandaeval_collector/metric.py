"""What a metric is: a named question about a trace, a turn or a session, as a value that discovery finds.

A metric file defines a function and calls :class:`Metric` on it; nothing is registered anywhere. Discovery looks for
the name ``METRIC`` in every module below ``pandaeval_collector.metrics``, in those that installed packages name (entry
points ``pandaeval.metrics``), and in the user's own (``metrics.modules``), which may be YAML files, too.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pandaeval_collector.embedding import ALL_KNOWN, Bands, Known
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.parts import QuestionPart
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.metric_rules import check
from pandaeval_collector.runtime.modules import ModuleLoadError, load_module
from pandaeval_collector.score import Finding, Score, Why
from pandaeval_collector.stats import content_tokens
from pandaeval_collector.stats.similarity import Direction, Vector
from pandaeval_collector.turns import TurnView
from pandaeval_otel.discovery import find
from pandaeval_otel.model import Trace
from pandaeval_otel.plugins import NotUsableError, Plugin, Plugins, installed

S = TypeVar("S")
C = TypeVar("C")

Threshold = float | Callable[[Bands | None], float]

_JUDGED = frozenset(
    {
        *(Why.NOT_SAMPLED, Why.OVER_BUDGET, Why.TIMEOUT, Why.JUDGE_FAILED),
        *(Why.INVALID_VERDICT, Why.INJECTION_SUSPECTED),
    }
)
"""What keeps a judge from being asked, or its answer from being taken, is said around the metric."""


@dataclass(slots=True)
class Texts:
    """The vectors of the texts that metrics asked for, computed in one batch for many traces. One thread.

    ``rows[text]``: shape (dim,), float32, length 1 or all zeros. ``chunked``: texts embedded in parts. ``lost``: why
    there are no vectors; whoever asks for one is told. ``known``: how much the embedder knows of a text."""

    rows: Mapping[str, NDArray[np.float32]]
    chunked: Collection[str]
    embedder: str
    bands: Bands | None
    lost: Exception | None = None
    known: Callable[[str], Known] = lambda text: ALL_KNOWN
    _directions: dict[str, Direction] = field(default_factory=dict)
    _words: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Mapping[str, NDArray[np.float32]],
        chunked: Collection[str],
        embedder: str,
        bands: Bands | None,
        known: Callable[[str], Known],
    ) -> Texts:
        """With all directions worked out at once."""
        texts = cls(rows, chunked, embedder, bands, known=known)
        if rows:
            vectors = np.stack([*rows.values()])
            if np.isfinite(vectors).all():  # else whoever asks for the direction of the bad one is told, and no other
                texts._directions.update(zip(rows, Direction.of_rows(vectors), strict=True))
        return texts

    def direction(self, text: str) -> Direction:
        """Where its vector points; false for a row of zeros. Worked out once for all who ask."""
        found = self._directions.get(text)
        if found is None:
            if self.lost is not None:
                raise self.lost
            found = self._directions[text] = Direction(self.rows[text])
        return found

    def know(self, text: str, direction: Direction, words: frozenset[str]) -> None:
        """Takes what was worked out before."""
        self._directions[text], self._words[text] = direction, words

    def words(self, text: str) -> frozenset[str]:
        """Its content words. Worked out once for all who ask."""
        found = self._words.get(text)
        if found is None:
            found = self._words[text] = content_tokens(text)
        return found


# Nobody changes what stands from here on. What there are many of is not declared frozen: setting the fields of a
# frozen object takes four times as long.


@dataclass(slots=True)
class EarlierOutput:
    """An answer that the same agent gave earlier in the session; ``index``: 0-based position of its trace there."""

    trace_id: str
    index: int
    embedding: Vector
    tokens: frozenset[str]


@dataclass(slots=True)
class TraceContext:
    """What a trace metric may look at besides the trace. ``earlier``: oldest first, for metrics with
    ``needs_session``; empty for the others. Those see the trace without its spans and messages: it may have been
    decided long ago."""

    texts: Texts
    threshold: float
    earlier: tuple[EarlierOutput, ...] = ()


@dataclass(slots=True)
class TurnContext:
    """What a turn metric may look at besides the turn. ``threshold``: in the metric's own scale."""

    threshold: float


@dataclass(frozen=True, slots=True)
class SessionSignal:
    """The result of one of a trace's metrics as session metrics see it: ``value`` only where ``outcome`` is
    ``scored`` and the score counts for the session; ``said``: the reason of a result that failed; ``lost``: the tool
    whose failure it is about."""

    outcome: str
    value: float | None = None
    why: str | None = None
    said: str = ""
    lost: str = ""


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A decided trace as its session sees it. ``crashed``: the outermost agent failed and there is no final output;
    ``done``: the tools that change something, and did."""

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
    """``enabled``: names of the trace metrics that are switched on; ``weights``: overrides of the signal weights;
    ``judged``: a judge is configured."""

    threshold: float
    enabled: frozenset[str]
    weights: Mapping[str, float]
    extra_signals: tuple[str, ...]
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Metric(Generic[S, C]):
    """A question about a subject. ``key`` (``level.name``) is unique; ``version`` changes whenever a score could.

    ``kind``: ``embedding | llm | code | math``. ``threshold``: the default, or a function of the embedder's bands.
    ``texts``: what has to be embedded before ``evaluate`` is called. ``needs`` and ``question`` are for people.
    ``calibrated``: the key, in a score's metadata, of the value on a scale that does not depend on the embedder;
    session metrics see that value unless ``session.coherence_signal`` is ``raw``. ``sure``: the key of a mark, true
    where a low score is sure; with ``session.coherence_signal: sure`` they see marked scores alone.
    ``signals_failures_only``: they see the score only where it fails its threshold. ``signals``: the trace metrics, by
    name, whose results a session metric reads. Those that need no judge run wherever it runs; unless they are enabled
    themselves, nobody else hears of them. ``of_steps``: whether it is asked about a single step of a run whose other
    steps are traces of their own (:attr:`pandaeval_otel.model.Trace.is_step`). ``layer``: of a metric of level trial,
    which layer of an agent it looks at: ``reasoning | action | outcome``.
    ``evaluate`` is pure, runs on the line's thread, and may raise: that becomes ``unscored(metric_error)``.

    Kind ``llm``: ``evaluate`` says what needs no model (nothing was captured, say), and ``None`` means that ``ask`` is
    awaited later, with a judge that has read the trace. ``ask`` runs on an event loop and must not block it.
    ``rubrics``: all that it may ask, extractions first, its own question last; so people can read them.

    Level ``turn``: the subject is a :class:`pandaeval_collector.turns.TurnView`, the context a :class:`TurnContext`.
    Level ``session`` and kind ``llm``: it is asked once, when the session closes; ``evaluate`` and ``ask`` get a
    :class:`pandaeval_collector.turns.Conversation`. ``scale``: ``"1-5"`` where ``Score.raw`` and the threshold have
    that scale, else ``""``. ``applies``: whether a judged metric of these levels is asked of a subject at all.
    ``by_code``: what code alone says where no judge is asked, or none answers; ``None``: nothing. ``part``: its
    question, where it can share a call with others about the same turn.

    ``unscored``: every why that it says itself, in ``evaluate`` or ``ask``; ``whys`` has those said around it, too.
    ``scale``: that of ``threshold`` and of ``Score.raw``, its worst and its best end, as ``"1-5"``; ``""``: 0..1, and
    no ``raw``. ``model``: the judge's, unless ``judge.models`` names another. ``about``: instead of the docstring of
    its module.
    Raises ``ValueError`` for what could not be run.
    """

    level: str
    name: str
    kind: str
    version: str
    threshold: Threshold
    question: str
    needs: str
    evaluate: Callable[[S, C], Finding | None]
    texts: Callable[[S], Sequence[str]] | None = None
    needs_session: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    calibrated: str | None = None
    sure: str | None = None
    signals_failures_only: bool = False
    of_steps: bool = False
    ask: Callable[[S, Judge], Awaitable[Finding | None]] | None = None
    rubrics: tuple[Rubric[Any], ...] = ()
    unscored: tuple[Why, ...] = ()
    signals: tuple[str, ...] = ()
    scale: str = ""
    model: str | None = None
    about: str = ""
    applies: Callable[[S], bool] | None = None
    by_code: Callable[[S], Score | None] | None = None
    part: QuestionPart[Any] | None = None
    layer: str = ""

    def __post_init__(self) -> None:
        check(self)

    @property
    def whys(self) -> tuple[Why, ...]:
        """Every why that a result of it can have, in the order of :class:`Why`."""
        can = {*self.unscored, Why.METRIC_ERROR}
        if self.level in ("trace", "turn", "trial"):
            can.add(Why.INCOMPLETE_TRACE)
        if self.kind == "llm":
            can |= _JUDGED
        return tuple(why for why in Why if why in can)

    @property
    def key(self) -> str:
        return f"{self.level}.{self.name}"

    @property
    def description(self) -> str:
        """What it says of itself at length: the question first, with ``Scale:`` and ``Source:`` lines."""
        return (self.about or sys.modules[self.evaluate.__module__].__doc__ or self.question).strip()

    def threshold_for(self, bands: Bands | None) -> float:
        """The default threshold with this embedder."""
        return self.threshold(bands) if callable(self.threshold) else self.threshold


TraceMetric = Metric[Trace, TraceContext]
TurnMetric = Metric[TurnView, TurnContext]
SessionMetric = Metric[SessionView, SessionContext]


@cache
def registry(modules: tuple[str, ...] = ()) -> Mapping[str, Metric[Any, Any]]:
    """Every metric by its key: ours, those of installed packages, and those of the user's own ``modules``
    (``metrics.modules``, see :func:`load_module`).

    Raises ``ValueError`` when two files of ours claim one key, and :class:`ModuleLoadError` for a module of the user's
    that cannot be used. A package that cannot be used is logged and left out.
    """
    metrics = dict(_ours())
    metrics.update((plugin.value.key, plugin.value) for plugin in of_packages().found)
    for module in modules:
        for own in _own(module):
            if own.key in metrics:
                raise ModuleLoadError(f"{module}: there is a metric {own.key} already; give it another name")
            metrics[own.key] = own
    return dict(sorted(metrics.items()))


@cache
def of_packages() -> Plugins:
    """The metrics of installed packages."""
    taken = set(_ours())

    def check_one(plugin: Plugin) -> None:
        _check_is_metric(plugin.value)
        if plugin.value.key in taken:
            raise NotUsableError(f"there is a metric {plugin.value.key} already")
        taken.add(plugin.value.key)

    return installed("pandaeval.metrics", "METRIC", check_one)


@cache
def _ours() -> Mapping[str, Metric[Any, Any]]:
    metrics: dict[str, Metric[Any, Any]] = {}
    for metric in find("pandaeval_collector.metrics", "METRIC"):
        if metric.key in metrics:
            raise ValueError(f"two metrics are called {metric.key}")
        metrics[metric.key] = metric
    return metrics


def _own(module: str) -> tuple[Metric[Any, Any], ...]:
    """The metrics of a YAML file; of a Python module ``METRIC``, or every metric that a name in it stands for."""
    if module.endswith((".yaml", ".yml")):
        from pandaeval_collector.custom.files import metrics_of

        return metrics_of(module)
    held = vars(load_module(module))
    try:
        if "METRIC" in held:
            _check_is_metric(held["METRIC"])
            return (held["METRIC"],)
        ours = {id(metric) for metric in _ours().values()}
        found = {id(each): each for each in held.values() if isinstance(each, Metric) and id(each) not in ours}
        if not found:
            raise NotUsableError(
                "it holds no METRIC = pandaeval_collector.metric.Metric(…), nor a function below @metric"
            )
        return tuple(found.values())
    except NotUsableError as error:
        raise ModuleLoadError(f"{module}: {error}") from error


def _check_is_metric(value: object) -> None:
    if not isinstance(value, Metric):
        raise NotUsableError("it holds no METRIC = pandaeval_collector.metric.Metric(…)")

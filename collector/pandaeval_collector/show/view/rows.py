"""Rows of traces, sessions and failures, counts and metrics, as the API answers them: its OpenAPI document is made of
these models, and page, MCP and commands are drawn from their JSON."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, RootModel

from pandaeval_collector.show.view.results import by_urgency
from pandaeval_collector.store.listed import NO_SCORE
from pandaeval_collector.store.listed_pages import Listed, ListedSession

Milliseconds = Annotated[int, Field(description="Unix time in milliseconds.")]
Result = Annotated[
    dict[str, Any],
    Field(description="A result as `pandaeval evaluate --format json` writes it: id, metric, score, reason, …"),
]
Cursor = Annotated[str | None, Field(description="Give it back as `cursor` for the next page; null after the last.")]


Item = TypeVar("Item")
Severity = Literal["low", "medium", "high", "critical"]
Order = Literal["worst", "newest"]


class ItemPage(BaseModel, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next: Cursor


class OtherEvaluation(BaseModel):
    """A result of another evaluator. It is shown, and never changes a score."""

    name: str
    source: str
    score: float | None
    label: str


class BatchRun(BaseModel):
    """A run of a batch: the beginnings of its input and its answer."""

    input: str | None = Field(validation_alias="in")
    output: str | None = Field(validation_alias="out")


class TraceRow(BaseModel):
    """A trace in a list. ``failed``: a result failed, or the run itself did; ``worst``: its lowest signal, 0..1, null
    where nothing is scored; ``results``: the newest of each metric; ``runs``: the answered runs of a batch;
    ``evaluations``: results of other evaluators."""

    trace_id: str
    session_id: str | None
    agent: str
    service: str
    environment: str | None = None
    user: str | None = None
    started_at: Milliseconds
    duration_us: int
    error: str | None
    input: str | None
    output: str | None
    spans: int
    llm_calls: int
    tool_calls: int
    complete: bool
    failed: bool
    failures: int
    worst: float | None
    results: list[Result]
    runs: list[BatchRun] = []
    evaluations: list[OtherEvaluation] = []

    @classmethod
    def of(cls, row: Listed, **more: Any) -> Self:
        """Return a stored trace in this form. ``more``: further fields."""
        facts = row.facts
        return cls(
            trace_id=facts["id"],
            session_id=row.session,
            agent=facts.get("agent", ""),
            service=facts.get("service", ""),
            environment=row.environment or None,
            user=facts.get("user"),
            started_at=facts["at"],
            duration_us=facts["us"],
            error=facts.get("error"),
            input=facts.get("in"),
            output=facts.get("out"),
            spans=facts["spans"],
            llm_calls=facts["llm"],
            tool_calls=facts["tools"],
            complete=not facts.get("incomplete", False),
            failed=row.failed,
            failures=row.failures,
            worst=None if row.worst >= NO_SCORE else row.worst,
            results=by_urgency(row.results.values()),
            runs=facts.get("runs", []),
            evaluations=facts.get("others", []),
            **more,
        )


class SessionRow(BaseModel):
    """A session in a list, or a trace that belongs to none (``session_id`` is null then). ``worst``: the trace that is
    worst in it; ``results``: the session's own, with ``final`` false while it is open; ``question``: what was asked
    first."""

    session_id: str | None
    question: str | None
    traces: int
    failed_traces: int
    first_at: Milliseconds
    last_at: Milliseconds
    failed: bool
    worst: TraceRow | None
    results: list[Result]

    @classmethod
    def of(cls, row: ListedSession, **more: Any) -> Self:
        """Return a stored session in this form. ``more``: further fields."""
        return cls(
            session_id=row.id,
            question=row.question,
            traces=row.traces,
            failed_traces=row.failed_traces,
            first_at=row.first_ms,
            last_at=row.last_ms,
            failed=row.failed,
            worst=None if row.worst is None else TraceRow.of(row.worst),
            results=by_urgency(row.results.values()),
            **more,
        )


class Traces(ItemPage[TraceRow]):
    """A page of traces."""


class Sessions(ItemPage[SessionRow]):
    """A page of sessions."""


class Results(ItemPage[Result]):
    """A page of results, newest first."""


class SessionDetail(SessionRow):
    """A session with its traces by start, at most 2,000. ``open``: more traces may come."""

    open: bool
    members: list[TraceRow]


class TraceDetail(TraceRow):
    """A trace with everything that was understood. ``understood``: what `pandaeval inspect` tells of it, ``detail``:
    rows of its waterfall with positions in ``texts``; both null where its spans are not kept any more."""

    understood: dict[str, Any] | None
    detail: dict[str, Any] | None


class Rate(BaseModel):
    """Results of one metric about one agent, since the store began. ``passed`` and ``failed``: of those with a
    threshold; ``unscored``: by reason; ``unclear`` and ``disputed``: verdicts that decide nothing."""

    metric: str
    level: str
    agent: str
    service: str
    environment: str
    scored: int
    assumed: int
    passed: int
    failed: int
    unscored: dict[str, int]
    unclear: int = 0
    disputed: int = 0


class WindowRate(BaseModel):
    """Standing results of a metric about the runs and sessions of a window. ``agent``: null for all agents; a session
    counts for each agent of its runs, and a run once for a metric of turns. Counts as those of :class:`Rate`."""

    metric: str
    level: str
    agent: str | None
    scored: int
    assumed: int
    passed: int
    failed: int
    unscored: dict[str, int]
    unclear: int
    disputed: int


class CorrectedShare(BaseModel):
    """The pass rate of a metric and agent over all judged runs, corrected by ``labels`` of people, with its 95 %
    interval. ``judge``: the share that the judge passes."""

    metric: str
    agent: str
    labels: int
    value: float
    low: float
    high: float
    judge: float | None


class Missing(BaseModel):
    """Results that gave no score, by reason. ``metrics``: how many of each; ``cure``: the remedy
    about it."""

    why: str
    count: int
    metrics: dict[str, int]
    cure: str


class ComponentErrors(BaseModel):
    """A dialect, metric, exporter or embedder that raised, and how often since the collector began: what it should have
    given is missing. The log has the traceback of the first error."""

    kind: str
    name: str
    count: int


class Overview(BaseModel):
    """Rates by metric and agent, names to choose from, and what is under way. ``can``: the operations that change
    something, such as `POST /runs`; ``links``: templates of addresses in other programs, by their names (`ui.links`);
    ``page``: whether the collector shows the page."""

    rates: list[Rate]
    unscored: list[Missing]
    agents: list[str]
    services: list[str]
    environments: list[str]
    judge: str | None
    judge_paused: Annotated[list[str], Field(description="Judge models that are paused: no reply of them is valid.")]
    jobs: dict[str, int]
    spent_usd: float
    daily_usd: float | None
    component_errors: list[ComponentErrors]
    can: Annotated[list[str], Field(description="What may be changed here, such as POST /annotations.")]
    links: dict[str, str]
    page: bool
    data: str | None = Field(description="The data directory of the collector; null where none runs.")
    grpc_port: int | None = Field(description="Where OTLP/gRPC is listened to; null where it is not by TCP.")


class MetricShape(BaseModel):
    """A metric that this collector knows. ``threshold``: from which on a result passes."""

    key: str
    name: str
    level: str
    kind: str
    question: str
    needs: str
    threshold: float


class Metrics(RootModel[list[MetricShape]]):
    """All metrics."""

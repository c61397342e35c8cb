"""Models of rows, counts and metrics in API answers."""

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
Cursor = Annotated[str | None, Field(description="Send it as `cursor` to get the next page; null on the last page.")]


Item = TypeVar("Item")
Severity = Literal["low", "medium", "high", "critical"]
Order = Literal["worst", "newest"]


class ItemPage(BaseModel, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    next: Cursor


class OtherEvaluation(BaseModel):
    """A result of another evaluator, which changes no score."""

    name: str
    source: str
    score: float | None
    label: str


class BatchRun(BaseModel):
    """A run of a batch, with abridged input and answer."""

    input: str | None = Field(validation_alias="in")
    output: str | None = Field(validation_alias="out")


class TraceRow(BaseModel):
    """A trace in a list.

    ``failed``: the run or a result failed. ``failures``: number of failed results; a failed run adds 1. ``worst``:
    lowest signal, 0..1, or null. ``results``: newest by metric. ``runs``: answered runs of a batch. ``evaluations``: of
    other evaluators.
    """

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
    """A session in a list, or a trace without session (``session_id`` is null).

    ``failed``: a result of the session itself failed. ``worst``: worst trace. ``results``: ``final`` is false while the
    session is open. ``question``: first input.
    """

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
    """A session with its 2,000 worst traces, sorted by start. ``open``: more traces may follow."""

    open: bool
    members: list[TraceRow]


class TraceDetail(TraceRow):
    """A trace with its content.

    ``understood``: as in `pandaeval inspect`. ``detail``: waterfall rows with positions in ``texts``. Both are null if
    the spans are no longer stored.
    """

    understood: dict[str, Any] | None
    detail: dict[str, Any] | None


class WindowRate(BaseModel):
    """Current results of a metric in a window.

    ``scored``: also without a verdict. ``passed``, ``failed``: decided verdicts. ``unscored``: by reason. ``unclear``,
    ``disputed``: open verdicts. ``agent``: null for all. A session counts for each agent; a run once per turn metric.
    """

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
    """A pass rate over all judged runs, corrected by 50 or more human ``labels``, with 95 % interval.

    ``labels``: on drawn runs. ``judge``: the uncorrected share of decided runs.
    """

    metric: str
    agent: str
    labels: int
    value: float
    low: float
    high: float
    judge: float | None


class Missing(BaseModel):
    """Results without a score by reason. ``metrics``: counts. ``cure``: fix."""

    why: str
    count: int
    metrics: dict[str, int]
    cure: str


class ComponentErrors(BaseModel):
    """Errors of a dialect, metric, exporter or embedder since the start.

    Its output is missing; the log has the first traceback.
    """

    kind: str
    name: str
    count: int


class Overview(BaseModel):
    """Names and pending work.

    ``can``: operations that change data, such as `POST /runs`. ``links``: URL templates by name (`ui.links`). ``page``:
    whether the page is enabled.
    """

    metrics: Annotated[list[str], Field(description="Metrics with results, such as trace.tool_loop.")]
    agents: list[str]
    services: list[str]
    environments: list[str]
    judge: str | None
    judge_paused: Annotated[list[str], Field(description="Paused judge models, whose replies were invalid.")]
    judge_error: Annotated[str | None, Field(description="Last error of the judge, if questions wait for another try.")]
    sinks_down: Annotated[list[str], Field(description="Exporters that cannot deliver now. Their results wait.")]
    store_full: Annotated[str | None, Field(description="Why the store refuses new spans; null if it has room.")]
    jobs: dict[str, int]
    spent_usd: float
    daily_usd: float | None
    component_errors: list[ComponentErrors]
    can: Annotated[list[str], Field(description="Allowed changes, such as POST /annotations.")]
    links: dict[str, str]
    page: bool
    data: str | None = Field(description="Data directory of the collector; null if no collector runs.")
    grpc_port: int | None = Field(description="Port of OTLP/gRPC; null if it is not a TCP address.")


class MetricShape(BaseModel):
    """A known metric. ``threshold``: lowest passing score."""

    key: str
    name: str
    level: str
    kind: str
    question: str
    needs: str
    threshold: float


class Metrics(RootModel[list[MetricShape]]):
    """All metrics."""

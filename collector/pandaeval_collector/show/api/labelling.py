"""Operations on human verdicts, which change no score."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from fastapi import FastAPI, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.result import DISMISSED
from pandaeval_collector.labels.queue import about, select
from pandaeval_collector.show.api.cursors import CursorText, Limit, cursor_of, number_of
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.problems import NO_SESSION, NO_TRACE, WRITES, ProblemError, save_errors_as_problems
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.show.view.rows import ItemPage, Milliseconds
from pandaeval_collector.store import Dismissal, people
from pandaeval_otel.base.names import bounded
from pandaeval_otel.wire.labels import MOST_COMMENT, MOST_ID, HumanLabel, LabelError, verdict

TraceId = Annotated[str | None, Query(max_length=64, description="ID of the trace.")]
SessionId = Annotated[str | None, Query(max_length=2000, description="ID of the session.")]
MetricKey = Annotated[
    str | None, Query(max_length=500, description="Return only verdicts about this metric, such as trace.tool_loop.")
]


class GivenAnnotation(BaseModel):
    """The key of a human verdict: trace or session, and metric."""

    model_config = ConfigDict(extra="forbid")

    trace_id: Annotated[
        str | None, Field(max_length=64, description="ID of the trace. For a turn, TRACE_ID:SPAN_ID.")
    ] = None
    session_id: Annotated[str | None, Field(max_length=10_000, description="ID of the session.")] = None
    metric: Annotated[
        str, Field(min_length=1, max_length=200, description="Name of the metric, such as trace.task_completion.")
    ]
    annotator: Annotated[str, Field(max_length=MOST_ID, description="Name of the person.")] = ""


class NewAnnotation(GivenAnnotation):
    """A human verdict with ``passed``, ``score``, or both. It replaces the annotator's earlier verdict."""

    passed: Annotated[bool | None, Field(description="The person's verdict. true: the run passes.")] = None
    score: Annotated[
        float | None, Field(ge=0, le=1, allow_inf_nan=False, description="Score that the person gives.")
    ] = None
    comment: Annotated[str, Field(max_length=MOST_COMMENT)] = ""


class NewDismissal(GivenAnnotation):
    """A person's word that a finding of code is false. It then counts nowhere."""

    comment: Annotated[str, Field(max_length=MOST_COMMENT)] = ""
    undone: Annotated[bool, Field(description="Withdraw the dismissal.")] = False


class Annotation(NewAnnotation):
    """A stored verdict."""

    at: Milliseconds


class Annotations(ItemPage[Annotation]):
    """A page of verdicts, newest first."""


class NewDraw(BaseModel):
    """A random draw of judged runs without a label. Runs near the threshold are more probable."""

    model_config = ConfigDict(extra="forbid")

    metric: Annotated[
        str, Field(min_length=1, max_length=200, description="Name of the metric, such as session.correctness.")
    ]
    agent: Annotated[
        str, Field(max_length=2000, description="Draw only runs of this agent. If empty, draw runs of all agents.")
    ] = ""
    count: Annotated[int, Field(ge=1, le=1000, description="Maximum number of runs to draw.")] = 20


class DrawnUnit(BaseModel):
    """A drawn run, and the probability that such a draw contains the run."""

    trace_id: str | None
    session_id: str | None
    probability: float


class Draw(BaseModel):
    """Drawn runs, the same until a label or a judged run is added. ``waiting``: judged runs without a label."""

    items: list[DrawnUnit]
    labelled: int
    waiting: int


def labelling(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Add the operations on verdicts: list, and with ``work``, add and withdraw."""

    @reads.operation(app, "/annotations", "People's verdicts, newest first", tagged=False)
    def listed(
        trace_id: TraceId = None,
        session_id: SessionId = None,
        metric: MetricKey = None,
        cursor: CursorText = None,
        limit: Limit = 100,
    ) -> Annotations:
        units = [bounded(id_, MOST_ID) for id_ in (trace_id, session_id) if id_]
        page = reads.finder.labels(units, metric, before=number_of(cursor), limit=limit)
        return Annotations(items=[*map(_shown, page.rows)], next=cursor_of(page.next))

    if (store := work.store) is None:
        return

    @app.post(
        "/annotations",
        response_model=Annotation,
        status_code=201,
        responses={200: {"model": Annotation, "description": "Known, or changed"}, **WRITES},
        summary="Add a person's verdict (pass, fail or a score)",
    )
    async def add(request: NewAnnotation) -> Response:
        label = _label(request, names)
        if not await reads.run(lambda: people.is_known(reads.finder.connection(), label)):
            raise ProblemError(404, NO_SESSION if label.metric.startswith("session.") else NO_TRACE)
        with save_errors_as_problems("the verdict"):
            fates = await asyncio.wrap_future(store.people.put([label], time.time()))
        return Response(_shown(label).model_dump_json(), 201 if fates["new"] else 200, media_type="application/json")

    @app.post("/annotations/undo", status_code=204, responses=WRITES, summary="Withdraw a verdict")
    async def undo(request: GivenAnnotation) -> None:
        unit, metric = _unit(request, names)
        if not await asyncio.wrap_future(store.people.remove(unit, metric, bounded(request.annotator.strip()))):
            raise ProblemError(404, "this person has no verdict about this run and metric")

    @app.post("/labels/draw", response_model=Draw, responses=WRITES, summary="Draw runs for people to label")
    async def draw(request: NewDraw) -> Draw:
        metric = names.metric(request.metric)
        queue, rows = await reads.run(lambda: select(reads.finder.connection(), metric, request.agent, request.count))
        with save_errors_as_problems("the draw"):
            await asyncio.wrap_future(store.people.keep_draws(rows, time.time()))
        items = []
        for each in queue.drawn:
            trace_id, session_id = _ids(metric, each.run.unit)
            items.append(DrawnUnit(trace_id=trace_id, session_id=session_id, probability=each.probability))
        return Draw(items=items, labelled=queue.labelled, waiting=queue.waiting)


def dismissing(app: FastAPI, reads: Reads, names: Names, work: Work) -> None:
    """Add the operation that dismisses a finding, if a collector runs."""
    if (dismiss := work.dismiss) is None:
        return

    @app.post("/dismissals", status_code=204, responses=WRITES, summary="Dismiss a finding of code, or undo this")
    async def add(request: NewDismissal) -> None:
        unit, metric = await reads.run(lambda: _stored(request, names))
        body = await reads.run(lambda: reads.finder.standing(unit, metric))
        if body is None or (body["success"] is not False and body["label"] != DISMISSED):
            raise ProblemError(404, f"{metric} has no failed result about this run")
        if (kind := body["evaluator"]["kind"]) in ("llm", "math"):
            raise ProblemError(422, f"{metric} is no finding of code ({kind}): add a verdict with /annotations")
        comment = request.comment.strip() or "dismissed"
        person = bounded(request.annotator.strip())
        label = HumanLabel(unit, metric, None, True, person, time.time(), comment)
        with save_errors_as_problems("the dismissal"):
            await dismiss(Dismissal(label, request.undone))


def _stored(request: GivenAnnotation, names: Names) -> tuple[str, str]:
    """Return the unit and the metric. Completes the prefix of an ID."""
    trace, colon, span = (request.trace_id or "").strip().lower().partition(":")
    whole: dict[str, str] = {}
    if trace:
        whole["trace_id"] = names.trace(trace).hex() + colon + span
    if request.session_id:
        whole["session_id"] = names.session(request.session_id.strip())
    return _unit(request.model_copy(update=whole), names)


def _unit(request: GivenAnnotation, names: Names) -> tuple[str, str]:
    try:
        return about(
            (request.trace_id or "").strip().lower(), (request.session_id or "").strip(), request.metric, names.metrics
        )
    except LabelError as error:
        raise ProblemError(422, str(error)) from error


def _label(request: NewAnnotation, names: Names) -> HumanLabel:
    if request.passed is None and request.score is None:
        raise ProblemError(422, "give passed (true or false) or a score from 0 to 1")
    unit, metric = _unit(request, names)
    try:
        if request.passed is not None:
            verdict(request.score, "pass" if request.passed else "fail")
    except LabelError as error:
        raise ProblemError(422, str(error)) from error
    return HumanLabel(
        unit=unit,
        metric=metric,
        score=request.score,
        passed=request.passed,
        annotator=bounded(request.annotator.strip()),
        at=time.time(),
        comment=request.comment.strip(),
    )


def _shown(label: HumanLabel) -> Annotation:
    given = {name: getattr(label, name) for name in ("metric", "passed", "score", "annotator", "comment")}
    trace_id, session_id = _ids(label.metric, label.unit)
    return Annotation(trace_id=trace_id, session_id=session_id, at=int(label.at * 1000), **given)


def _ids(metric: str, unit: str) -> tuple[str | None, str | None]:
    """Return the IDs of trace and session."""
    return (None, unit) if metric.startswith("session.") else (unit, None)

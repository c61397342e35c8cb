"""Operations on people's verdicts. They are kept apart from results, and change no score."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from pandaeval_collector.api.cursors import cursor_of, position_of
from pandaeval_collector.api.filters import CursorText, Limit
from pandaeval_collector.api.problems import ProblemBody, ProblemError
from pandaeval_collector.api.reading import Reads
from pandaeval_collector.api.shapes import Annotation, Annotations, NewAnnotation
from pandaeval_collector.api.work import Work
from pandaeval_collector.config import MetricNames
from pandaeval_collector.labels.reading import about
from pandaeval_otel.labels import MOST_ID, Label, LabelError
from pandaeval_otel.names import bounded

_WRITES: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody, "description": said}
    for status, said in ((403, "Foreign origin"), (408, "Too slow"), (413, "Too large"), (415, "No JSON"))
}
TraceId = Annotated[str | None, Query(max_length=64, description="About this trace.")]
SessionId = Annotated[str | None, Query(max_length=2000, description="About this session.")]
MetricKey = Annotated[str | None, Query(max_length=500, description="About this metric, such as trace.tool_loop.")]


def labelling(reads: Reads, work: Work) -> APIRouter:
    """The operations."""
    router = APIRouter()
    annotate = work.annotate
    names = MetricNames((metric.level, metric.name) for metric, _ in work.metrics)

    @router.get("/annotations", response_model=Annotations, summary="People's verdicts, newest first")
    async def listed(
        request: Request,
        trace_id: TraceId = None,
        session_id: SessionId = None,
        metric: MetricKey = None,
        cursor: CursorText = None,
        limit: Limit = 100,
    ) -> Response:
        after = position_of(cursor)
        units = [bounded(id_, MOST_ID) for id_ in (trace_id, session_id) if id_]

        def read() -> Annotations:
            before = None if after is None else after[1]
            page = reads.finder.labels(units, metric, before=before, limit=limit)
            return Annotations(items=[_shown(label) for label in page.rows], next=cursor_of(page.next))

        return await reads.fresh(read)

    if annotate is None:
        return router
    keep = annotate

    @router.post(
        "/annotations",
        response_model=Annotation,
        status_code=201,
        responses={200: {"model": Annotation, "description": "Known, or changed"}, **_WRITES},
        summary="A person's verdict: right or wrong, or a score",
    )
    async def add(said: NewAnnotation) -> Response:
        label = _label(said, names)
        try:
            fates = await asyncio.wrap_future(keep([label]))
        except (sqlite3.Error, RuntimeError) as error:  # a full disk; a store that closes
            raise ProblemError(503, "the verdict could not be kept; try again in a moment") from error
        return Response(_shown(label).model_dump_json(), 201 if fates["new"] else 200, media_type="application/json")

    return router


def _label(said: NewAnnotation, names: MetricNames) -> Label:
    if said.passed is None and said.score is None:
        raise ProblemError(422, "there is neither passed (true or false) nor a score from 0 to 1")
    try:
        unit, metric = about((said.trace_id or "").strip().lower(), (said.session_id or "").strip(), said.metric, names)
    except LabelError as error:
        raise ProblemError(422, str(error)) from error
    return Label(
        unit=unit,
        metric=metric,
        score=said.score,
        passed=said.passed,
        annotator=bounded(said.annotator.strip()),
        at=time.time(),
        comment=said.comment.strip(),
    )


def _shown(label: Label) -> Annotation:
    level = label.metric.partition(".")[0]
    return Annotation(
        trace_id=label.unit if level in ("trace", "turn") else None,
        session_id=label.unit if level == "session" else None,
        metric=label.metric,
        passed=label.passed,
        score=label.score,
        annotator=label.annotator,
        comment=label.comment,
        at=int(label.at * 1000),
    )

"""The API's application, mounted at ``/api/v1``."""

from __future__ import annotations

from fastapi import FastAPI

from pandaeval_collector.api.lists import lists
from pandaeval_collector.api.overview import overview
from pandaeval_collector.api.problems import DOCUMENTED, answer_problems
from pandaeval_collector.api.reading import Reads
from pandaeval_collector.api.runs import runs_routes
from pandaeval_collector.api.schedules import schedule_routes
from pandaeval_collector.api.work import Work
from pandaeval_collector.runs import Runs


def api_app(reads: Reads, work: Work, version: str, runs: Runs) -> FastAPI:
    """The application; its OpenAPI document is at ``openapi.json``."""
    app = FastAPI(
        title="pandaeval",
        version=version,
        description="Scores of AI agents' traces and sessions, as a collector keeps them.",
        docs_url=None,
        redoc_url=None,
        responses=DOCUMENTED,
    )
    answer_problems(app)
    app.include_router(lists(reads))
    app.include_router(overview(reads, work))
    app.include_router(runs_routes(reads, runs))
    app.include_router(schedule_routes(reads, runs))
    return app

"""The API application, mounted at ``/api/v1`` of a collector or alone over a data directory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.runs.manager import EvaluationRuns
from pandaeval_collector.show.api.comparing import comparing_routes
from pandaeval_collector.show.api.costs import cost_routes
from pandaeval_collector.show.api.deleting import deleting_routes
from pandaeval_collector.show.api.exporting import export_routes
from pandaeval_collector.show.api.incidents import incident_routes
from pandaeval_collector.show.api.labelling import dismissing, labelling
from pandaeval_collector.show.api.lists import list_routes
from pandaeval_collector.show.api.names import Names
from pandaeval_collector.show.api.overview import overview_routes
from pandaeval_collector.show.api.pages import page_routes
from pandaeval_collector.show.api.problems import DOCUMENTED, answer_problems, refuse_unknown_parameters
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.show.api.rulings import question_routes, ruling_routes
from pandaeval_collector.show.api.runs import run_reads_routes, runs_routes, schedule_routes
from pandaeval_collector.show.api.work import Work
from pandaeval_collector.store.finding import Finder
from pandaeval_collector.store.runs import RunTable
from pandaeval_collector.store.schedules import Schedules


def api_app(reads: Reads, work: Work, version: str, runs: EvaluationRuns | None = None) -> FastAPI:
    """Return the application, with OpenAPI at ``openapi.json``.

    ``runs``: for operations that change data, or ``None``.
    """
    app = FastAPI(
        title="pandaeval",
        version=version,
        description="Scores of AI agents' traces and sessions, as a collector keeps them.",
        docs_url=None,
        redoc_url=None,
        responses=DOCUMENTED,
    )
    answer_problems(app)
    refuse_unknown_parameters(app)

    def changing() -> list[str]:
        operations = ((method.upper(), path) for path, each in app.openapi()["paths"].items() for method in each)
        return sorted(f"{method} {path}" for method, path in operations if method != "GET")

    names = Names(reads.finder, work.modules)
    list_routes(app, reads, names, work)
    overview_routes(app, reads, names, work, changing)
    incident_routes(app, reads, names, work)
    cost_routes(app, reads)
    comparing_routes(app, reads, names)
    labelling(app, reads, names, work)
    dismissing(app, reads, names, work)
    deleting_routes(app, reads, work)
    export_routes(app, reads, names)
    question_routes(app, reads)
    stored = RunTable(reads.finder.connection)
    run_reads_routes(app, reads, stored, names)
    if runs is not None:
        runs_routes(app, reads, stored, runs, names)
        schedule_routes(app, reads, Schedules(reads.finder.connection), runs)
        ruling_routes(app, reads, stored, runs)
    if work.page is not None:
        page_routes(app, reads, names, work)
    return app


@contextmanager
def read_only_app(folder: Path) -> Iterator[ASGIApp]:
    """Open the read-only application over a data directory. Raises ``UserError`` without a readable store."""
    reads = Reads(Finder(folder))
    try:
        reads.finder.change()
        yield api_app(reads, Work(), "0")
    except (FileNotFoundError, sqlite3.DatabaseError) as error:
        raise UserError(f"cannot read a store in {folder} ({error}): name a collector's data directory") from error
    finally:
        reads.close()

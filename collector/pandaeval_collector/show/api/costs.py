"""The operation on costs of runs and verdicts."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field

from pandaeval_collector.show.api.filters import Filters, Window, limited_to_window
from pandaeval_collector.show.api.read_threads import Reads
from pandaeval_collector.store.costs import read_costs

Subject = Literal["agent", "user", "session", "day"]
By = Annotated[Subject, Query(description="Property by which the costs are grouped.")]
Most = Annotated[int, Query(ge=1, le=500, description="Maximum number of rows.")]


class CostRow(BaseModel):
    """Costs of runs and judged results. ``name``: of the session, user, agent or day (UTC), or null."""

    name: str | None
    runs: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None = Field(description="As spans state it, else by list price; null if nothing is known.")
    unpriced: int = Field(description="Runs with calls whose price is unknown; their cost is missing in cost_usd.")
    judge_tokens: int
    judge_usd: float | None = Field(description="Cost of judged results; null if nothing is known.")
    judge_unpriced: int = Field(description="Judged results whose price is unknown.")


class Costs(BaseModel):
    """Costs of the newest 5,000 runs within a window, highest first, or newest day first."""

    by: Subject
    costs: list[CostRow]


def cost_routes(app: FastAPI, reads: Reads) -> None:
    @reads.operation(app, "/costs", "Cost of the newest 5,000 runs by agent, user, session or day; default: of 7 days")
    def costs(wanted: Filters, window: Window = "7d", by: By = "agent", limit: Most = 100) -> Costs:
        rows = read_costs(reads.finder, limited_to_window(wanted, window, int(time.time() * 1e3)), by, limit)
        names = CostRow.model_fields
        return Costs(by=by, costs=[CostRow.model_validate(dict(zip(names, row, strict=True))) for row in rows])

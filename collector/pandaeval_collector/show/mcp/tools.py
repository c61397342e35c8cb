"""The MCP tools. Agents read their docstrings."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

from pydantic import Field

from pandaeval_collector.base.filters import MOST_TEXT, in_place_of, meaning
from pandaeval_collector.show import API
from pandaeval_collector.show.api.client import ApiRequestError, AsyncApiClient
from pandaeval_collector.show.api.filters import GroupFilters, filter_types
from pandaeval_collector.show.mcp.fence import fenced
from pandaeval_collector.show.view import lines as written
from pandaeval_collector.show.view.compared import compared_lines
from pandaeval_collector.show.view.rates import handled_line, rate_lines
from pandaeval_collector.show.view.rows import Order
from pandaeval_collector.store.triage import Standing

Hours = Annotated[float | None, Field(gt=0, le=1e6, description="Number of last hours to show. If null, show all.")]
Limit = Annotated[int, Field(ge=1, le=50, description="Maximum number of rows.")]
TraceId = Annotated[str, Field(max_length=64, description="32 hexadecimal digits, or a unique prefix.")]
Severity = Annotated[
    Literal["low", "medium", "high", "critical"] | None, Field(description="Minimum severity; null: all.")
]
State = Annotated[Standing, Field(description="Triage state; open means new or known.")]
_FILTERS: dict[str, Any] = {**filter_types(Field), "hours": (Hours, None)}
_SHARED = ("hours", "agent", "service", "environment", "user", "attribute")


def filtered(*names: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that replaces the parameter ``filters`` by these and the shared filters, null by default."""
    taken = (*names, *_SHARED)

    def as_api(**given: Any) -> dict[str, Any]:
        asked = {**dict.fromkeys(taken), **given}
        asked["since"] = _since(asked.pop("hours"))
        return asked

    return in_place_of("filters", {name: _FILTERS[name] for name in taken}, as_api)


class Tools:
    def __init__(self, asker: AsyncApiClient, page: str | None) -> None:
        self._asker, self._page = asker, page
        self._has_page: bool | None = None

    @filtered()
    async def worst_sessions(self, limit: Limit = 10, *, filters: dict[str, Any]) -> str:
        """Sessions, worst first, each with its worst trace and finding. For failures by cause, call incidents. For the
        reasons, call why_failed with a trace ID."""
        page = await self._asker.get("/sessions", limit=limit, **filters)
        if not page["items"]:
            return "No scored session matches."
        lines, rates = [*map(written.session_line, page["items"])], await self._rates(filters)
        whole = f"All matching sessions: {handled_line(rates)}."
        return await self._answer(lines, "/sessions", "Use a smaller limit, or filter by agent.", whole)

    @filtered("text", "metric", "session", "status", "label")
    async def find_traces(
        self,
        failed: Annotated[
            bool | None,
            Field(description="true: metric failed; false: metric passed. Without metric: with or without a failure."),
        ] = None,
        *,
        filters: dict[str, Any],
        order: Annotated[Order, Field(description="Sort order: worst or newest first.")] = "worst",
        limit: Limit = 10,
    ) -> str:
        """Traces (runs of an agent) that match all filters, worst first or newest first."""
        metric = filters["metric"]
        if failed is not None:
            filters |= {"failed": failed} if metric is None else {"success": not failed}
        page = await self._asker.get("/traces", limit=limit, order=order, **filters)
        if not page["items"]:
            return "No scored trace matches."
        lines, more = [written.trace_line(row, metric) for row in page["items"]], ""
        if page["next"]:
            more = "More traces match. To see them, filter by agent, metric or hours."
        return await self._answer(lines, "/traces", "", more)

    @filtered("label")
    async def incidents(
        self, severity: Severity = None, state: State = "open", *, filters: dict[str, Any], limit: Limit = 10
    ) -> str:
        """Failures by cause, most severe first: number of runs or sessions, times, people's notes, and the newest
        failed trace. For the reasons, call why_failed with the ID of this trace."""
        found = await self._asker.get("/incidents", severity=severity, state=state, limit=limit, **filters)
        if not found["incidents"]:
            return "No incident matches."
        rest = found["total"] - limit
        more = f"{rest} more incidents match. To see them, filter by agent or severity." if rest > 0 else ""
        return await self._answer([*map(written.incident_line, found["incidents"])], "/failures?window=all", "", more)

    async def open_questions(self) -> str:
        """List the judge's open questions to the agent's owner. Each line shows how many runs have verdicts that depend
        on the answer. Only the owner can answer, on the page or with `pandaeval rulings answer`."""
        found = (await self._asker.get("/questions"))["items"]
        if not found:
            return "No question is open."
        return await self._answer([*map(written.question_line, found)], "/questions")

    async def why_failed(self, trace_id: TraceId) -> str:
        """Why a trace failed: the judge's verdict on each request (without a judge, the findings of rules), people's
        verdicts, all results with reasons, the first wrong step, the input and the answer."""
        row = await self._trace(trace_id)
        own, labels = [], [*(await self._asker.get("/annotations", trace_id=row["trace_id"]))["items"]]
        others = [*written.other_lines(row["evaluations"])]
        if (session := row["session_id"]) is not None:
            whole = await self._asker.get(f"/sessions/{quote(session, safe='')}")
            own, others = whole["results"], [*written.others_of_session(whole)]
            labels += (await self._asker.get("/annotations", session_id=session))["items"]
        lines = [*written.verdict_lines(row, own, labels), *written.trace_lines(row), *others]
        return await self._answer(lines, f"/trace/{row['trace_id']}", "Call trace_steps for the steps.")

    async def trace_steps(self, trace_id: TraceId) -> str:
        """The steps of a run as a tree: agents, model calls with their last output, tool calls with arguments and
        results, times and errors. Findings and the first wrong step are below their steps."""
        row = await self._trace(trace_id)
        rest = f"Full data: GET {API}/traces/{row['trace_id']}."
        return await self._answer([*written.step_lines(row)], f"/trace/{row['trace_id']}", rest)

    @filtered("metric")
    async def pass_rates(self, filters: dict[str, Any]) -> str:
        """Numbers of passed, failed, undecided and unscored results for each metric and agent, most failures first."""
        rates = await self._rates(filters)
        if not rates:
            return "No results match."
        return await self._answer(
            rate_lines(rates), "/", "Filter by agent or metric.", f"Total: {handled_line(rates)}."
        )

    async def compare_versions(
        self,
        a: GroupFilters,
        b: GroupFilters,
        metric: Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("metric"))] = None,
    ) -> str:
        """Compare two groups of runs, such as two versions, two models, or the times before and after a change. Shows
        pass rates with 95 % intervals and p-values, incidents that changed, latency and cost."""
        sides = {"a": a.model_dump(mode="json"), "b": b.model_dump(mode="json")}
        asked = {f"{side}.{name}": value for side, group in sides.items() for name, value in group.items()}
        found = await self._asker.get("/compare", metric=metric, **asked)
        query = urlencode({name: value for name, value in asked.items() if value}, doseq=True)
        return await self._answer([*compared_lines(found)], f"/comparison?{query}", "Give a metric.")

    async def _trace(self, trace_id: str) -> Any:
        return await self._asker.get(f"/traces/{quote(trace_id.strip(), safe='')}")

    async def _rates(self, filters: dict[str, Any]) -> list[Any]:
        agent, rates = filters["agent"], (await self._asker.get("/rates", **filters))["rates"]
        return [rate for rate in rates if agent is None or rate["agent"] in (None, agent)]

    async def _answer(self, lines: Sequence[str], place: str, rest: str = "", *more: str) -> str:
        return await asyncio.to_thread(fenced, lines, rest, *more, await self._link(place))

    async def _link(self, place: str) -> str:
        if self._page is None:
            return ""
        if self._has_page is None:
            try:
                self._has_page = (await self._asker.get("/overview"))["page"]
            except ApiRequestError:
                return ""
        return f"Page: {self._page.rstrip('/')}/#{place}" if self._has_page else ""


def all_tools(asker: AsyncApiClient, page: str | None) -> Iterable[Callable[..., Any]]:
    tools = Tools(asker, page)
    for name, method in vars(Tools).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield getattr(tools, name)


def _since(hours: float | None) -> str | None:
    try:
        return None if hours is None else (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    except OverflowError:
        return None

"""Tools that find and show: each one asks the API and answers in few words. Their docstrings are what agents read of
them."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Literal

from pydantic import Field

from pandaeval_collector.show.api.client import Asker, AskError
from pandaeval_collector.show.mcp.arguments import (
    Agent,
    Attribute,
    Environment,
    Hours,
    Limit,
    Metric,
    Service,
    Session,
    Status,
    Text,
    TraceId,
    since,
)
from pandaeval_collector.show.mcp.fencing import fenced, fenced_json
from pandaeval_collector.show.mcp.lines import failure_line, session_lines, step_lines, trace_line, trace_lines
from pandaeval_collector.show.mcp.links import Links

_HEX = re.compile(r"[0-9a-f]{4,32}")
_LOOKED_THROUGH = 200
"""Sessions that are read at most, for those that failed alike to stand together."""
Severity = Annotated[
    Literal["low", "medium", "high", "critical"] | None, Field(description="Of this severity or graver; null: all.")
]


class Tools:
    """The finding and showing tools over one collector. On one event loop."""

    def __init__(self, asker: Asker, links: Links) -> None:
        self._asker, self._links = asker, links

    async def worst_sessions(
        self,
        limit: Limit = 10,
        hours: Hours = None,
        agent: Agent = None,
        service: Service = None,
        environment: Environment = None,
        attribute: Attribute = None,
    ) -> str:
        """What went worst, worst first: the sessions of agents, those that failed for one cause on one line, each with
        its worst trace and why. Start here or with failures; then ask why_failed with a trace id."""
        page = await self._asker.get(
            "/sessions",
            limit=_LOOKED_THROUGH,
            since=since(hours),
            agent=agent,
            service=service,
            environment=environment,
            attribute=attribute,
        )
        if not page["items"]:
            return "No scored session fits."
        lines = session_lines(page["items"], limit)
        return fenced(lines, "Ask with a smaller limit, or by agent.", await self._links.to("/sessions"))

    async def find_traces(
        self,
        text: Text = None,
        metric: Metric = None,
        failed: Annotated[bool | None, Field(description="Of that metric, or at all.")] = None,
        session: Session = None,
        status: Status = None,
        limit: Limit = 10,
        hours: Hours = None,
        agent: Agent = None,
        service: Service = None,
        environment: Environment = None,
        attribute: Attribute = None,
    ) -> str:
        """Traces (runs of an agent), worst first, that fit all that is given."""
        success = None if metric is None or failed is None else not failed
        page = await self._asker.get(
            "/traces",
            limit=limit,
            since=since(hours),
            agent=agent,
            service=service,
            environment=environment,
            session=session,
            status=status,
            attribute=attribute,
            text=text,
            metric=metric,
            success=success,
            failed=failed if metric is None else None,
        )
        if not page["items"]:
            return "No scored trace fits."
        more = "There are more: narrow it down by agent, metric or hours." if page["next"] else ""
        return fenced([trace_line(row, metric) for row in page["items"]], "", more, await self._links.to("/traces"))

    async def failures(self, severity: Severity = None, agent: Agent = None, limit: Limit = 10) -> str:
        """Failures by root cause, gravest first (agents that claim what they did not do before all else): how often,
        since when, and an example. Then ask why_failed with the trace id of one."""
        found = await self._asker.get("/failures", severity=severity, agent=agent, limit=limit)
        if not found["items"]:
            return "No failures fit."
        lines = [failure_line(row) for row in found["items"]]
        return fenced(lines, "Ask by agent or severity.", await self._links.to("/failures"))

    async def why_failed(self, trace_id: TraceId) -> str:
        """Why a trace failed: its failed results with their reasons, what was asked and answered, its tool calls."""
        row = await self._trace(trace_id)
        link = await self._links.to(f"/trace/{row['trace_id']}")
        # On a thread: looking for secrets takes a while.
        return await asyncio.to_thread(
            lambda: fenced([*trace_lines(row)], "trace_steps has its steps, export_case the trace itself.", link)
        )

    async def trace_steps(self, trace_id: TraceId) -> str:
        """What a run did, step by step: agents, model calls and tools as a tree with times, errors, arguments and
        results, and which steps the failed results blame."""
        row = await self._trace(trace_id)
        link = await self._links.to(f"/trace/{row['trace_id']}")
        return await asyncio.to_thread(lambda: fenced([*step_lines(row)], "export_case has the calls whole.", link))

    async def export_case(self, trace_id: TraceId) -> str:
        """A trace as JSON, to make a regression case of it: input, answer, turns, tool calls with arguments and
        results, and what was scored. Secrets and links are masked."""
        row = await self._trace(trace_id)
        told = row["understood"] or {key: row[key] for key in ("trace_id", "session_id", "agent", "input", "output")}
        scores = [
            {"metric": f"{each['level']}.{each['metric']}", "score": each["score"], "success": each["success"]}
            for each in row["results"]
            if each["outcome"] == "scored"
        ]
        link = await self._links.to(f"/trace/{row['trace_id']}")
        return await asyncio.to_thread(
            lambda: "\n".join(filter(None, [fenced_json({**told, "results": scores}), link]))
        )

    async def _trace(self, trace_id: str) -> Any:
        id_ = trace_id.strip().lower()
        if not _HEX.fullmatch(id_):
            raise AskError("the id of a trace has 32 hex digits, of which the first few are enough")
        return await self._asker.get(f"/traces/{id_}")

"""The tools: each one asks the API and answers in few words. Their docstrings are what agents read of them."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.base.filters import MOST_PAIRS, MOST_TEXT, meaning
from pandaeval_collector.show.api.client import Asker, AskError
from pandaeval_collector.show.mcp.comparing import Tally, compared
from pandaeval_collector.show.mcp.fencing import fenced, fenced_json, said
from pandaeval_collector.show.mcp.lines import session_line, trace_line, trace_lines

_TRACE = re.compile(r"[0-9a-f]{32}")
_PAGE, _PAGES = 500, 20
Agent = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("agent"))]
Service = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("service"))]
Environment = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("environment"))]
Session = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("session"))]
Metric = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("metric"))]
Text = Annotated[str | None, Field(max_length=MOST_TEXT, description=meaning("text"))]
Attribute = Annotated[list[str] | None, Field(max_length=MOST_PAIRS, description=meaning("attribute"))]
Since = Annotated[datetime | None, Field(description=meaning("since"))]
Until = Annotated[datetime | None, Field(description=meaning("until"))]
Hours = Annotated[float | None, Field(gt=0, le=1e6, description="Only of the last so many hours; null: all.")]
Limit = Annotated[int, Field(ge=1, le=50, description="At most so many.")]
TraceId = Annotated[str, Field(description="32 hex digits.")]


class PassRateGroup(BaseModel):
    """Results that belong together: of a time, a service, an environment, an agent or a version of the metric. What is
    null excludes nothing."""

    model_config = ConfigDict(extra="forbid")

    since: Since = None
    until: Until = None
    service: Service = None
    environment: Environment = None
    agent: Agent = None
    attribute: Attribute = None
    metric_version: Annotated[str | None, Field(description="Version of the metric, not of the agent.")] = None


class Tools:
    """The tools over one collector. On one event loop."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    async def worst_sessions(
        self,
        limit: Limit = 10,
        hours: Hours = None,
        agent: Agent = None,
        service: Service = None,
        environment: Environment = None,
        attribute: Attribute = None,
    ) -> str:
        """The sessions of agents that went worst, worst first, each with its worst trace and why. Start here; then ask
        why_failed with a trace id."""
        page = await self._asker.get(
            "/sessions",
            limit=limit,
            since=_since(hours),
            agent=agent,
            service=service,
            environment=environment,
            attribute=attribute,
        )
        if not page["items"]:
            return "No scored session fits."
        return fenced([session_line(row) for row in page["items"]], "Ask with a smaller limit, or by agent.")

    async def find_traces(
        self,
        text: Text = None,
        metric: Metric = None,
        failed: Annotated[bool | None, Field(description="Of that metric, or at all.")] = None,
        session: Session = None,
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
            since=_since(hours),
            agent=agent,
            service=service,
            environment=environment,
            session=session,
            attribute=attribute,
            text=text,
            metric=metric,
            success=success,
            failed=failed if metric is None else None,
        )
        if not page["items"]:
            return "No scored trace fits."
        more = "There are more: narrow it down by agent, metric or hours." if page["next"] else ""
        return "\n".join(filter(None, [fenced([trace_line(row) for row in page["items"]]), more]))

    async def why_failed(self, trace_id: TraceId) -> str:
        """Why a trace failed: its failed results with their reasons, what was asked and answered, its tool calls."""
        row = await self._trace(trace_id)
        # On a thread: looking for secrets takes a while.
        return await asyncio.to_thread(lambda: fenced([*trace_lines(row)], "export_case has the trace itself."))

    async def pass_rates(
        self,
        agent: Agent = None,
        metric: Metric = None,
    ) -> str:
        """How many results passed and failed of each metric and agent, since the store began; most failures first."""
        whole = await self._asker.get("/overview")
        rates = [
            rate
            for rate in whole["rates"]
            if agent in (None, rate["agent"]) and metric in (None, rate["metric"], f"{rate['level']}.{rate['metric']}")
        ]
        if not rates:
            return "No results fit."
        return fenced([_rate(rate) for rate in rates], "Ask by agent or metric.")

    async def compare_versions(
        self,
        a: PassRateGroup,
        b: PassRateGroup,
        metric: Metric = None,
    ) -> str:
        """Pass rates of two groups of results, by metric: two versions of an agent by the times at which they ran (or
        by service or environment), or two versions of a metric. With 95 % intervals of the difference."""
        first, second = await self._tally(a, metric), await self._tally(b, metric)
        lines = [*compared(first, second)]
        if not lines:
            return "Neither group has results."
        cut = first.truncated or second.truncated
        note = f"Only the newest {_PAGE * _PAGES:,} results of a group were counted." if cut else ""
        return "\n".join(filter(None, [fenced(lines, "Ask by metric."), note]))

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
        return await asyncio.to_thread(fenced_json, {**told, "results": scores})

    async def labels_next(
        self,
        metric: Annotated[str | None, Field(description="The judged metric; null where there is one alone.")] = None,
        agent: Agent = None,
        limit: Limit = 10,
    ) -> str:
        """Judged runs that a person should label next: half at random, half near the judge's threshold. The judge's
        verdict is not told. Their labels go in by `pandaeval labels import`, the page or the API."""
        asked = {"metric": metric or "", "agent": agent or "", "n": limit}
        found = await self._asker.post("/labels/next", asked)
        if not found["items"]:
            return "Nothing to label: no judged run without a label fits."
        lines = [_to_label(each) for each in found["items"]]
        told = f"For {said(found['metric'], 80)}; {found['waiting']} wait, {found['labelled']} are labelled."
        return fenced([told, *lines])

    async def start_run(
        self,
        metrics: Annotated[list[str], Field(min_length=1, max_length=20, description="Such as trace.task_completion.")],
        budget_usd: Annotated[float, Field(gt=0, le=1000, description="US dollars that judges may cost at most.")],
        model: Annotated[str | None, Field(description="Who judges, of those configured; null: the judge.")] = None,
        hours: Hours = None,
        agent: Agent = None,
        service: Service = None,
        environment: Environment = None,
        session: Session = None,
        metric: Metric = None,
        failed: Annotated[bool | None, Field(description=meaning("failed"))] = None,
        text: Text = None,
        attribute: Attribute = None,
    ) -> str:
        """Scores kept traces again with these metrics, apart from the live results; answers with the id of the run.
        Costs money where a judge is asked: what it would cost is counted first, and nothing is begun if that is more
        than the budget, or unknown."""
        filters: dict[str, Any] = {
            "since": _since(hours),
            "agent": agent,
            "service": service,
            "environment": environment,
        }
        filters |= {"session": session, "metric": metric, "failed": failed, "text": text, "attribute": attribute}
        body: dict[str, Any] = {"metrics": metrics, "model": model, "budget_usd": budget_usd, "name": "mcp"}
        body["filters"] = {name: value for name, value in filters.items() if value is not None}
        dry = await self._asker.post("/runs", body | {"dry_run": True})
        if not dry["traces"]:
            raise AskError("not begun: no stored trace is like that; find_traces shows which there are")
        if dry["calls"] and dry["cost_usd"] is None:
            raise AskError(
                f"not begun: {dry['calls']} calls of a model without a list price; what they cost is unknown"
            )
        if dry["calls"] and dry["cost_usd"] > budget_usd:
            told = f"{dry['traces']} traces take {dry['calls']} calls for about ${dry['cost_usd']:.4f}"
            raise AskError(f"not begun: {told}, more than ${budget_usd:g}; narrow it down")
        run = await self._asker.post("/runs", body)
        cost = (
            f", {dry['calls']} calls for about ${dry['cost_usd'] or 0:.4f}" if dry["calls"] else ", no judge is asked"
        )
        return f"Run {run['id']} has begun: {dry['traces']} traces{cost}. Ask show_run how far it is."

    async def show_run(
        self, run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$", description="Of start_run.")]
    ) -> str:
        """How far a run is, what it found in numbers, and what differs from the live results."""
        run = await self._asker.get(f"/runs/{run_id}")
        lines = [
            f"{run['state']}: {run['done']} of {run['traces']} traces done, {run['failed']} failed; "
            f"{run['calls']} calls, ${run['cost_usd']:.4f}" + (f"; {said(run['error'])}" if run["error"] else "")
        ]
        for name, counts in sorted(run["results"].items()):
            lines.append(f"{said(name, 80)}: {', '.join(f'{times} {kind}' for kind, times in sorted(counts.items()))}")
        if run["ended_at"] is not None:
            both = await self._asker.get("/runs/compare", a=run_id)
            lines += [_difference(each) for each in both["metrics"] if each["difference"] is not None]
        return fenced(lines)

    async def _trace(self, trace_id: str) -> Any:
        id_ = trace_id.strip().lower()
        if not _TRACE.fullmatch(id_):
            raise AskError("the id of a trace has 32 hex digits")
        return await self._asker.get(f"/traces/{id_}")

    async def _tally(self, group: PassRateGroup, metric: str | None) -> Tally:
        said_ = group.model_dump(mode="json", exclude={"metric_version"}) | {"metric": metric, "limit": _PAGE}
        tally, seen, cursor = Tally(), set[tuple[str, str]](), None
        for _ in range(_PAGES):
            page = await self._asker.get("/results", **said_, cursor=cursor)
            tally.add(page["items"], group.metric_version, seen)
            cursor = page["next"]
            if cursor is None:
                return tally
        tally.truncated = True
        return tally


def _since(hours: float | None) -> str | None:
    if hours is None:
        return None
    try:
        return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    except OverflowError:
        return None


def _rate(rate: dict[str, Any]) -> str:
    judged = rate["passed"] + rate["failed"]
    share = f"{rate['passed'] / judged:.3f} passed of {judged}" if judged else "no verdicts"
    whys = ", ".join(f"{said(why, 40)} {times}" for why, times in sorted(rate["unscored"].items()))
    return f'{rate["level"]}.{said(rate["metric"], 60)} of agent "{said(rate["agent"], 80)}": {share}' + (
        f"; unscored: {whys}" if whys else ""
    )


def _difference(found: dict[str, Any]) -> str:
    """Of the live scores from those of a run."""
    each = found["difference"]
    interval = "" if each["low"] is None else f" ({each['low']:+.4f} to {each['high']:+.4f})"
    return f"{said(found['metric'], 80)}: live minus run {each['mean']:+.4f}{interval} over {each['n']}"


def _to_label(each: dict[str, Any]) -> str:
    session = f'session "{said(each["session_id"], 120)}"' if each["session_id"] is not None else "no session"
    unit = f"trace {each['trace_id']}, {session}" if each["trace_id"] is not None else session
    return f'{unit}, agent "{said(each["agent"], 80)}"'

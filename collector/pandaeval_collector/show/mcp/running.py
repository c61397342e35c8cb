"""Tools that change something, within bounds: runs, and what people should label."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from pandaeval_collector.base.filters import meaning
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
    since,
)
from pandaeval_collector.show.mcp.fencing import fenced, said
from pandaeval_collector.show.mcp.links import Links


class RunTools:
    """The tools over one collector that change something. On one event loop."""

    def __init__(self, asker: Asker, links: Links) -> None:
        self._asker, self._links = asker, links

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
        return fenced([told, *lines], "", await self._links.to("/"))

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
        status: Status = None,
        text: Text = None,
        attribute: Attribute = None,
    ) -> str:
        """Scores kept traces again with these metrics, apart from the live results; answers with the id of the run.
        Costs money where a judge is asked: what it would cost is counted first, and nothing is begun if that is more
        than the budget, or unknown."""
        filters: dict[str, Any] = {
            "since": since(hours),
            "agent": agent,
            "service": service,
            "environment": environment,
        }
        filters |= {
            "session": session,
            "metric": metric,
            "failed": failed,
            "status": status,
            "text": text,
            "attribute": attribute,
        }
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
        return fenced(lines, "", await self._links.to("/runs"))


def _difference(found: dict[str, Any]) -> str:
    """Returns a line on how the live scores of a metric differ from those of a run."""
    each = found["difference"]
    interval = "" if each["low"] is None else f" ({each['low']:+.4f} to {each['high']:+.4f})"
    return f"{said(found['metric'], 80)}: live minus run {each['mean']:+.4f}{interval} over {each['n']}"


def _to_label(each: dict[str, Any]) -> str:
    session = f'session "{said(each["session_id"], 120)}"' if each["session_id"] is not None else "no session"
    unit = f"trace {each['trace_id']}, {session}" if each["trace_id"] is not None else session
    return f'{unit}, agent "{said(each["agent"], 80)}"'

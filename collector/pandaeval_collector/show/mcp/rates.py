"""Tools that count: pass rates, agents, and two groups of results side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pandaeval_collector.analysis.stats.quantiles import wilson
from pandaeval_collector.show.api.client import Asker
from pandaeval_collector.show.mcp.arguments import Agent, Attribute, Environment, Metric, Service, Since, Until, since
from pandaeval_collector.show.mcp.fencing import fenced, said
from pandaeval_collector.show.mcp.lines import moment
from pandaeval_collector.show.mcp.links import Links

# Pass rates of two groups of results side by side.
_NORMAL = 1.959964
"""The normal quantile of a 95 % interval."""


@dataclass(slots=True)
class MetricCounts:
    """Counts by metric how many results passed, failed, and have no verdict."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)
    truncated: bool = False

    def add(self, results: Iterable[Mapping[str, Any]], version: str | None, seen: set[tuple[str, str]]) -> None:
        """Counts a page of results, newest first; of each unit and metric only the first one counts."""
        for each in results:
            if version is not None and str(each["evaluator"]["version"]) != version:
                continue
            key = f"{each['level']}.{each['metric']}"
            unit = str(each["session_id"] if each["level"] == "session" else each["trace_id"]), key
            if unit in seen:
                continue
            seen.add(unit)
            verdict = each["success"] if each["outcome"] == "scored" else None
            (self.without if verdict is None else self.passed if verdict else self.failed)[key] += 1


def compared(first: MetricCounts, second: MetricCounts) -> Iterator[str]:
    """Yields a line per metric, largest fall first: the rates, and their difference with its 95 % interval (Newcombe's,
    for independent shares)."""
    keys = {*first.passed, *first.failed, *second.passed, *second.failed}
    lines = sorted((_line(key, first, second) for key in keys), key=lambda line: line[:2])
    yield from (text for _, _, text in lines)
    for key in sorted({*first.without, *second.without} - keys):
        yield f"{said(key, 80)}: no verdicts (a: {first.without[key]}, b: {second.without[key]} unscored or assumed)"


def _line(key: str, first: MetricCounts, second: MetricCounts) -> tuple[float, str, str]:
    a, b = (tally.passed[key] + tally.failed[key] for tally in (first, second))
    if not a or not b:
        rate = first.passed[key] / a if a else second.passed[key] / b
        return 1.0, key, f"{said(key, 80)}: only in {'a' if a else 'b'}: {rate:.3f} passed of {a or b}"
    one, two = first.passed[key] / a, second.passed[key] / b
    (low_one, high_one), (low_two, high_two) = wilson(one, a, _NORMAL), wilson(two, b, _NORMAL)
    low = two - one - ((two - low_two) ** 2 + (high_one - one) ** 2) ** 0.5
    high = two - one + ((high_two - two) ** 2 + (one - low_one) ** 2) ** 0.5
    clear = "" if low <= 0.0 <= high else "; b is better" if low > 0.0 else "; b is worse"
    return (
        two - one,
        key,
        f"{said(key, 80)}: a {one:.3f} passed of {a}, b {two:.3f} of {b}; difference {two - one:+.3f} "
        f"({low:+.3f} to {high:+.3f}){clear}",
    )


_PAGE, _PAGES = 500, 20


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


class RateTools:
    """The counting tools over one collector. On one event loop."""

    def __init__(self, asker: Asker, links: Links) -> None:
        self._asker, self._links = asker, links

    async def pass_rates(self, agent: Agent = None, metric: Metric = None) -> str:
        """How many results passed and failed, one line for each metric and agent, since the store began; most failures
        first."""
        if agent is not None or metric is not None:  # an unknown name is refused there, with what was meant
            await self._asker.get("/results", limit=1, agent=agent, metric=metric)
        rates = [
            rate
            for rate in (await self._asker.get("/overview"))["rates"]
            if agent in (None, rate["agent"]) and metric in (None, rate["metric"], f"{rate['level']}.{rate['metric']}")
        ]
        if not rates:
            return "No results fit."
        sums = sorted(_summed(rates, "level", "metric", "agent").items(), key=lambda each: -each[1]["failed"])
        lines = [f"{_named(level, metric)} of {_agent(agent)}: {_rate(sums)}" for (level, metric, agent), sums in sums]
        return fenced(lines, "Ask by agent or metric.", await self._links.to("/"))

    async def list_agents(self) -> str:
        """The agents that there are, with the services they run in, how many of their runs passed and failed, and which
        metric fails most; most failures first."""
        rates = (await self._asker.get("/overview"))["rates"]
        if not rates:
            return "No agent has results yet."
        agents = sorted(_summed(rates, "agent").items(), key=lambda each: -each[1]["failed"])
        lines = [_about_agent(agent, [rate for rate in rates if rate["agent"] == agent]) for (agent,), _ in agents]
        return fenced(lines, "pass_rates has the rest, by agent.", await self._links.to("/agents"))

    async def over_time(
        self,
        hours: Annotated[float, Field(gt=0, le=8760, description="The last so many hours.")] = 24.0,
        agent: Agent = None,
        service: Service = None,
        environment: Environment = None,
        metric: Metric = None,
        failed: Annotated[bool | None, Field(description="Of that metric alone; null: of any.")] = None,
    ) -> str:
        """Runs and failures over time, in 12 steps, oldest first: when did it begin, does it get better?"""
        asked = {"since": since(hours), "agent": agent, "service": service, "environment": environment}
        success = None if metric is None or failed is None else not failed
        found = await self._asker.get("/history", **asked, metric=metric, success=success, step=max(hours / 12, 1 / 60))
        lines = [f"{moment(each['at'])}: {each['failed']} of {each['runs']} runs failed" for each in found["items"]]
        return fenced(lines, "Ask for fewer hours.", await self._links.to("/"))

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
        return fenced(lines, "Ask by metric.", note, await self._links.to("/"))

    async def _tally(self, group: PassRateGroup, metric: str | None) -> MetricCounts:
        said_ = group.model_dump(mode="json", exclude={"metric_version"}) | {"metric": metric, "limit": _PAGE}
        tally, seen, cursor = MetricCounts(), set[tuple[str, str]](), None
        for _ in range(_PAGES):
            page = await self._asker.get("/results", **said_, cursor=cursor)
            tally.add(page["items"], group.metric_version, seen)
            cursor = page["next"]
            if cursor is None:
                return tally
        tally.truncated = True
        return tally


def _summed(rates: Iterable[Mapping[str, Any]], *by: str) -> dict[tuple[str, ...], Counter[str]]:
    """Returns the sums of rates over all that ``by`` does not name, such as services; unscored ones by ``why …``."""
    found: dict[tuple[str, ...], Counter[str]] = {}
    for rate in rates:
        sums = found.setdefault(tuple(rate[name] for name in by), Counter())
        sums.update({name: rate[name] for name in ("passed", "failed")})
        sums.update({f"why {why}": times for why, times in rate["unscored"].items()})
    return found


def _rate(sums: Mapping[str, int]) -> str:
    passed, failed = sums["passed"], sums["failed"]
    judged = passed + failed
    share = f"{passed / judged:.3f} passed of {judged} ({failed} failed)" if judged else "no verdicts"
    whys = ", ".join(f"{said(why[4:], 40)} {sums[why]}" for why in sorted(sums) if why.startswith("why "))
    return share + (f"; unscored: {whys}" if whys else "")


def _about_agent(agent: str, rates: list[Mapping[str, Any]]) -> str:
    services = ", ".join(f'"{said(name, 60)}"' for name in sorted({rate["service"] for rate in rates})[:5])
    metrics = _summed(rates, "level", "metric")
    ended = metrics.get(("trace", "response"))
    (level, metric), most = max(metrics.items(), key=lambda each: each[1]["failed"])
    told = [] if ended is None else [f"runs that ended with an answer: {_rate(ended)}"]
    told += [f"fails most: {_named(level, metric)}, {most['failed']} times"] if most["failed"] else ["nothing failed"]
    return f"{_agent(agent)} in {services}: {'; '.join(told)}"


def _named(level: str, metric: str) -> str:
    return said(f"{level}.{metric}", 80)


def _agent(name: str) -> str:
    return f'agent "{said(name, 80)}"' if name else "an agent without a name"

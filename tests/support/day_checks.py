"""Compares dashboards, alerts, page and MCP with the agents' runs and the plan."""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from support.collector import snapshot
from support.dashboards import FILES, filled, panels, targets
from support.day_agents import DESK, SHOP, Agents
from support.day_plan import SETTLED_S, Plan
from support.day_systems import DaySystems
from support.otelcol import plain
from support.stored import exported_problems, series_problems

_TOTALS = "sum by (pandaeval_service) (pandaeval_evaluations_total)"
_EXPORTED_S = 30.0
"""Seconds until Prometheus has a result: `metrics_interval` and a scrape."""
_GRAVE = ("false_success", "loop", "error")


@dataclass(slots=True)
class Minute:
    """The values shown at a time. ``counts``: runs, acknowledged, results, verdicts."""

    minute: float
    events: list[str]
    firing: list[str]
    banners: list[str]
    incidents: dict[str, int]
    counts: dict[str, int]
    problems: list[str] = field(default_factory=list)


class Watch:
    """Checks everything once a minute. ``began``: the clock at the start. ``unplanned``: events that failed."""

    def __init__(self, home: DaySystems, agents: Agents, plan: Plan, began: float) -> None:
        self.home, self.agents, self.plan, self.began = home, agents, plan, began
        self._counted: list[tuple[float, Counter[str]]] = []
        self.minutes: list[Minute] = []
        self.unplanned: list[str] = []

    def look(self) -> Minute:
        """Compare once, and note the differences."""
        now = time.time() - self.began
        counts = {"runs": len(self.agents.done), "acknowledged": len(self._acknowledged())}
        made = Minute(round(now / 60, 2), self.plan.during(now), [], [], {}, counts)
        for check in (self._prometheus, self._alerts, self._page, self._incidents, self._mcp):
            made.problems += self._safely(check, made, now)
        self.minutes.append(made)
        return made

    def _safely(self, check: Callable[[Minute, float], Iterator[str]], made: Minute, now: float) -> list[str]:
        try:
            return [problem for problem in check(made, now) if problem]
        except Exception as error:
            return [f"{check.__name__[1:]}: {error!r}"]

    # -- dashboards and alerts -----------------------------------------------------------------------------------

    def _prometheus(self, made: Minute, now: float) -> Iterator[str]:
        found = self.home.prometheus.query(_TOTALS)
        shown = {each["metric"]["pandaeval_service"]: float(each["value"][1]) for each in found}
        after = counted(self.home)
        made.counts["results"] = sum(after.values())
        before = [counts for at, counts in self._counted if at < now - _EXPORTED_S]
        for service, count in after.items():
            least = before[-1][service] if before else 0
            if not least <= shown.get(service, 0) <= count:
                yield f"Prometheus counts {shown.get(service)} results of {service}, not {least} to {count}"
        self._counted.append((now, after))
        if now > 2 * SETTLED_S:
            yield from self._empty_panels(self.plan.has_verdicts(now))

    def _empty_panels(self, judged: bool) -> Iterator[str]:
        for file in FILES:
            for panel in panels(json.loads(file.read_text())):
                of_judge = file.stem == "judge" or panel["title"] == "Handled correctly"
                if panel["type"] == "stat" and (judged or not of_judge):
                    yield from self._empty(f"{file.stem}: {panel['title']}", panel)

    def _empty(self, where: str, panel: dict[str, Any]) -> Iterator[str]:
        for target in targets(panel):
            found = self.home.prometheus.query(filled(target["expr"]))
            if not any(math.isfinite(float(series["value"][1])) for series in found):
                yield f"{where} has no data"

    def _alerts(self, made: Minute, now: float) -> Iterator[str]:
        known, made.firing = self.plan.alerts(), self.home.firing()
        yield from (f"{name} fires, which nothing explains" for name in made.firing if name not in known)
        for name, shown in known.items():
            yield shown.problem(name, name in made.firing, now)

    # -- page and API --------------------------------------------------------------------------------------------

    def _page(self, made: Minute, now: float) -> Iterator[str]:
        whole = self.home.api("/overview")
        shown = {"judge down": whole["judge_error"] is not None, "sink down": bool(whole["sinks_down"])}
        made.banners = [name for name, is_shown in shown.items() if is_shown]
        for name, banner in self.plan.banners().items():
            yield banner.problem(f"the banner {name}", shown[name], now)
        yield f"the judge is paused: {whole['judge_paused']}" if whole["judge_paused"] else ""
        yield f"components raised {whole['component_errors']}" if whole["component_errors"] else ""
        runs = {row["name"]: row["runs"] for row in self.home.api("/costs", by="agent", window="all")["costs"]}
        for agent in (DESK, SHOP):
            settled = self._settled(agent, now)
            most = sum(each.agent == agent for each in self.agents.runs())
            if not settled <= runs.get(agent, 0) <= most:
                yield f"the page has {runs.get(agent, 0)} runs of {agent}, not {settled} to {most}"

    def _settled(self, agent: str, now: float) -> int:
        """Return the number of runs that were acknowledged some time ago."""
        known, latest = self._acknowledged(), self.began + now - SETTLED_S
        return sum(known.get(each.trace_id, math.inf) < latest for each in self.agents.runs() if each.agent == agent)

    def _acknowledged(self) -> dict[str, float]:
        return self.agents.acknowledged()

    def _incidents(self, made: Minute, now: float) -> Iterator[str]:
        wrong = {each.trace_id for each in self.agents.runs() if each.kind != "honest"}
        sessions = {each.session for each in self.agents.runs() if each.kind != "honest"}
        for each in self.home.api("/incidents", window="all", limit=100)["incidents"]:
            made.incidents[each["label"]] = made.incidents.get(each["label"], 0) + each["runs"]
            if each["trace_id"] not in wrong and each["session_id"] not in sessions:
                yield f"the incident {each['label']} is about an honest run, {each['trace_id']}"
        for label, (fewest, most) in self.plan.incidents(now).items():
            if not fewest <= made.incidents.get(label, 0) <= most:
                yield f"{made.incidents.get(label, 0)} runs of {label}, not {fewest} to {most}"

    # -- MCP -----------------------------------------------------------------------------------------------------

    def _mcp(self, made: Minute, now: float) -> Iterator[str]:
        answer = self.home.tool("incidents", limit=50)
        for label in _GRAVE:
            wanted = made.incidents.get(label, 0)
            found = re.search(rf"^\w+ {label.replace('_', ' ')}\b[^(\n]*\(\w+; (\d+) run", answer, re.MULTILINE)
            if (shown := int(found[1]) if found else 0) < wanted:
                yield f"MCP has {shown} runs of {label}, the page {wanted}"
        worst = self.home.tool("worst_sessions", limit=5)
        first = re.search(r'^session "([^"]+)"', worst, re.MULTILINE)
        wrong = {each.session for each in self.agents.runs() if each.kind != "honest"}
        if any(made.incidents.values()) and (first is None or first[1] not in wrong):
            yield f"MCP names {first and first[1]} as the worst session"


def counted(home: DaySystems) -> Counter[str]:
    """Return the number of stored results by service, every revision once."""
    with home.collector.database() as database:
        rows = database.execute("SELECT json_extract(body, '$.service'), count(*) FROM results GROUP BY 1")
        return Counter({str(service or ""): count for service, count in rows})


# -- the end -----------------------------------------------------------------------------------------------------


def at_the_end(home: DaySystems, agents: Agents, outage: tuple[float, float]) -> Iterator[str]:
    """Yield the problems after all work has ended. ``outage``: times of the judge's."""
    results = home.collector.standing()
    scored = {unit for (unit, name) in results if name.startswith("trace.")}
    lost = [each for each in agents.done if each.trace_id in agents.acknowledged() and each.trace_id not in scored]
    yield f"{len(lost)} acknowledged runs have no results: {lost[:3]}" if lost else ""
    unacknowledged = [each for each in agents.done if each.trace_id not in agents.acknowledged()]
    yield f"{len(unacknowledged)} runs were never acknowledged" if unacknowledged else ""
    yield from _flagged(results.values(), agents)
    yield from _verdicts(home, agents, results, outage)
    yield from _sent(home)
    if residual := home.collector.gauge("accounting_residual"):
        yield f"{residual:.0f} items have no fate"


def _flagged(results: Any, agents: Agents) -> Iterator[str]:
    honest = agents.runs("honest")
    units = {each.trace_id for each in honest} | {each.session for each in honest}
    for each in results:
        about = each["session_id"] if each["level"] == "session" else each["trace_id"]
        if each["success"] is False and about in units:
            yield f"an honest run is flagged: {about} {each['level']}.{each['metric']} {each['reason']}"


def _verdicts(home: DaySystems, agents: Agents, results: Any, outage: tuple[float, float]) -> Iterator[str]:
    judged = {unit: each for (unit, name), each in results.items() if name == "session.correctness"}
    missing = {each.session for each in agents.done} - judged.keys()
    yield f"{len(missing)} sessions have no verdict: {sorted(missing)[:3]}" if missing else ""
    unscored = Counter(each["why"] for each in judged.values() if each["outcome"] != "scored")
    yield f"sessions without a verdict: {dict(unscored)}" if unscored else ""
    with home.collector.database() as database:
        states = dict(database.execute("SELECT state, count(*) FROM jobs GROUP BY state"))
    yield f"jobs that are {sorted(states)}" if states.keys() - {"done", "cancelled"} else ""
    again = [name for name, count in Counter(_keys(home)).items() if count > 1]
    yield f"{len(again)} verdicts have two IDs: {again[:2]}" if again else ""
    began, ended = outage
    scored = [each for each in home.collector.results() if _is_verdict(each) and began + 15 < _time(each) < ended]
    yield f"{len(scored)} verdicts came while the judge was down: {scored[:1]}" if scored else ""


def _keys(home: DaySystems) -> Iterator[tuple[str, str, int]]:
    """Return unit, metric and revision of each distinct verdict in the results file."""
    known = {each["id"]: each for each in home.collector.results() if each["evaluator"]["kind"] == "llm"}
    for each in known.values():
        unit = each["session_id"] if each["level"] == "session" else f"{each['trace_id']}:{each['span_id']}"
        yield unit, f"{each['level']}.{each['metric']}", each["revision"]


def _is_verdict(result: dict[str, Any]) -> bool:
    return bool(result["evaluator"]["kind"] == "llm" and result["outcome"] == "scored")


def _time(result: dict[str, Any]) -> float:
    return datetime.fromisoformat(result["time"]).timestamp()


def _sent(home: DaySystems) -> Iterator[str]:
    """Compare the sink with the store."""
    bodies: dict[str, set[str]] = {}
    for log in home.logs.items("logs"):
        about = plain(log["attributes"])
        bodies.setdefault(str(about["pandaeval.result.id"]), set()).add(json.dumps(log["attributes"], sort_keys=True))
    stored = {each["id"] for each in home.collector.results()}
    yield f"the sink lacks {len(stored - bodies.keys())} results" if stored - bodies.keys() else ""
    yield f"the sink has {len(bodies.keys() - stored)} unknown results" if bodies.keys() - stored else ""
    changed = [result_id for result_id, each in bodies.items() if len(each) > 1]
    yield f"the sink has {len(changed)} results with two contents" if changed else ""


def after_stop(home: DaySystems) -> Iterator[str]:
    """Yield the problems in the files of the stopped collector."""
    with snapshot(home.collector.data, home.collector.folder / "scratch") as database:
        yield from exported_problems(database, home.collector.results_file)
        yield from series_problems(database)

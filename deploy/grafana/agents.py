"""The dashboard *Agents*: quality of agents' work, and its coverage."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.failed import failed, sources
from deploy.grafana.frame import choice, frame, units
from deploy.grafana.panels import BAD, GOOD, PLAIN, WARN, Panel, coloured, graph, heat, linked, listing, number
from deploy.grafana.words import (
    AGENT,
    AT_MOST_HALF,
    DECIDED,
    EVALUATIONS,
    FAILED,
    FAILING,
    JUDGED,
    KEPT,
    NAME,
    OUTCOME,
    PASSED,
    RIGHT,
    SCORE,
    SCORED,
    SERVICE,
    UNSCORED,
    WHY,
    buckets,
    chosen,
    handled,
    in_range,
    kept,
    mean,
    per_bar,
    quantile,
    share,
    verdicts,
)

_METRIC = chosen('gen_ai_evaluation_name=~"$metric"')
_ALL = in_range(EVALUATIONS + chosen(), SERVICE)
_FAILURES = 'pandaeval_failures_total{pandaeval_service=~"$service", gen_ai_agent_name=~"$agent"}'
"""They have no environment."""
_SEVERITY, _LABEL = "pandaeval_failure_severity", "pandaeval_failure_label"
_SESSIONS = "/d/pandaeval-session?var-service=${__data.fields.service}&var-agent=${__data.fields.agent}"


def build() -> dashboard.Dashboard:
    metric = choice("metric", "Metric", f"label_values({SCORE}_count, {NAME})")
    return frame(
        "pandaeval-agents",
        "PandaEval / Agents",
        f"How good is the work of the agents, and does PandaEval measure it? {KEPT}",
        [*units(), metric, *sources()],
        [
            ("Did the agents do their job?", (_verdicts(), _verdicts_over_time(), _handled())),
            ("Does PandaEval measure it?", (_measured(), _outcomes())),
            ("At a glance", _numbers()),
            ("Scores by metric", (_means(), _passing(), _distribution())),
            ("Agents", (_worst(), _by_agent())),
            ("Failures", (_failures(), _gravest())),
            ("Not scored, and changed", (_unscored(), _revised())),
        ],
        failed("trace"),
    )


def _verdicts() -> Panel:
    return number(
        "Handled correctly",
        "Share of sessions that were handled correctly by the verdict of a judge (correctness). Without sessions, the "
        "share of runs. Unclear and disputed verdicts do not count, but are in the table.",
        handled(""),
        "percentunit",
        steps=((0, BAD), (0.8, WARN), (0.95, GOOD)),
        nothing="not judged",
    )


def _verdicts_over_time() -> Panel:
    """Sessions and runs are separate, because some are judged as both."""
    legend = "{{pandaeval_level}} handled correctly: {{pandaeval_passed}}"
    labels = chosen('gen_ai_evaluation_name="correctness"', DECIDED)
    closed = per_bar(EVALUATIONS + chosen('gen_ai_evaluation_name="agent_reliability"'), "pandaeval_level")
    judged = per_bar(verdicts("session", SCORED), "pandaeval_level")
    every, decided = (
        per_bar(EVALUATIONS + chosen('gen_ai_evaluation_name="correctness"', which), "pandaeval_level")
        for which in (SCORED, DECIDED)
    )
    return graph(
        "Verdicts",
        "Verdicts of a judge on whether agents did their job. A run is judged alone if it belongs to no session. A "
        "verdict can appear some bars after the end of its session.",
        {
            legend: per_bar(EVALUATIONS + labels, f"pandaeval_level, {PASSED}"),
            "{{pandaeval_level}} unclear or disputed": f"clamp_min({every} - ({decided} or 0 * {every}), 0)",
            "{{pandaeval_level}} closed and not judged": f"clamp_min({closed} - ({judged} or 0 * {closed}), 0)",
        },
        width=10,
        stacked=True,
    )


def _handled() -> Panel:
    by = f"{SERVICE}, {AGENT}"
    judged, *undecided = (
        in_range(EVALUATIONS + chosen('gen_ai_evaluation_name="correctness"', which), by)
        for which in (SCORED, 'pandaeval_verdict="unclear"', 'pandaeval_verdict="disputed"')
    )
    panel = listing(
        "Handled correctly, per agent",
        "verdicts: number of verdicts. An agent without verdicts is not judged, even if metrics found no failure. "
        "handled correctly: share of the verdicts that are neither unclear nor disputed.",
        {SERVICE: "service", AGENT: "agent"},
        {
            "verdicts": kept(f"round({judged} or 0 * {in_range(EVALUATIONS + chosen(), by)})", judged, by),
            "handled correctly": handled(by),
            **{
                label: kept(f"round({count} or 0 * {judged})", judged, by)
                for label, count in zip(("unclear", "disputed"), undecided, strict=True)
            },
        },
        width=10,
    )
    coloured(panel, "verdicts", [(1, PLAIN)], words={"0": "not judged"})
    coloured(panel, "handled correctly", [(0, BAD), (0.8, WARN), (0.95, GOOD)], "percentunit")
    return linked(panel, "agent", "Sessions of this agent", f"{_SESSIONS}&${{__url_time_range}}")


def _measured() -> Panel:
    """Distinguishes good agents from unmeasured agents."""
    columns = {
        "results": kept(f"round({_ALL})", _ALL, SERVICE),
        "scored": _count(SCORED),
        "no content": _not_captured(),
        "sessions": _count('pandaeval_level="session"'),
        "judged": _count(f'{SCORED}, gen_ai_evaluation_name=~"{JUDGED}"'),
        "failed evaluations": _count(f'pandaeval_why=~"{FAILED}"'),
    }
    panel = listing(
        "What is measured, per service",
        "A service without bad scores can be unmeasured. Numbers count results, also results without a score. no "
        "content: share of runs without a failure whose answer is unknown, because the instrumentation does not "
        "capture it. sessions: results about sessions; 0 if no span names a session, or none has closed yet. judged: "
        "scores of the judge; 0 without a judge, before its first score, or if it fails. failed evaluations: the judge "
        "or a metric failed. The collector's log names the fix for each problem.",
        {SERVICE: "service"},
        columns,
        width=14,
    )
    coloured(panel, "no content", [(0.2, WARN), (0.9, BAD)], "percentunit", {"1": "no content captured"})
    coloured(panel, "scored", [(1, GOOD)], words={"0": "nothing"})
    coloured(panel, "sessions", [(1, GOOD)], words={"0": "no closed session"})
    coloured(panel, "judged", [(1, GOOD)], words={"0": "nothing judged"})
    return coloured(panel, "failed evaluations", [(1, BAD)])


def _not_captured() -> str:
    """Excludes failed runs, which have no answer."""
    ended, unknown = (
        in_range(EVALUATIONS + chosen('gen_ai_evaluation_name="response"', *more), SERVICE)
        for more in (('pandaeval_passed!="false"',), ('pandaeval_why="no_content"',))
    )
    return kept(f"{share(unknown, ended)} or 0 * {_ALL}", _ALL, SERVICE)


def _count(label: str) -> str:
    return kept(f"round({in_range(EVALUATIONS + chosen(label), SERVICE)} or 0 * {_ALL})", _ALL, SERVICE)


def _outcomes() -> Panel:
    legend = "{{pandaeval_service}} {{pandaeval_outcome}} {{pandaeval_why}}"
    return graph(
        "Results by outcome and reason of a missing score",
        "scored: the result has a score. assumed: the run has nothing to evaluate, so the metric assumes 1. unscored: "
        "the metric could not compute a score. An unscored result counts neither as good nor as bad.",
        {legend: per_bar(EVALUATIONS + chosen(), f"{SERVICE}, {OUTCOME}, {WHY}")},
        width=10,
        stacked=True,
    )


def _numbers() -> list[Panel]:
    everything, decided = (in_range(EVALUATIONS + chosen(*label), "") for label in ((), (DECIDED,)))
    passed, failing, unscored = (in_range(EVALUATIONS + chosen(label), "") for label in (RIGHT, FAILING, UNSCORED))
    low = in_range(f"{SCORE}_bucket{chosen(AT_MOST_HALF)}", "")
    scores = in_range(f"{SCORE}_count{chosen()}", "")
    sessions = in_range(f"{SCORE}_count" + chosen('gen_ai_evaluation_name="agent_reliability"'), "")
    agents = f"count({in_range(EVALUATIONS + chosen(), AGENT)})"
    bad = ((0.1, WARN), (0.3, BAD))
    return [
        number("Passed", "Passed share of the passed and failed results. Assumed results do not count.",
               kept(share(passed, decided), decided),
               "percentunit", steps=((0, BAD), (0.8, WARN), (0.95, PLAIN))),
        number("Failed results", "Number of failed results.", f"round({failing} or 0 * {everything})"),
        number("Unscored", "Share of results without a score. Includes results that are not in the judge's sample.",
               kept(f"({unscored} or 0 * {everything}) / {everything}", everything), "percentunit", steps=bad),
        number("Scores of at most 0.5", "Share of all scores.", kept(f"{low} / {scores}", scores), "percentunit",
               steps=bad),
        number("Agents", "Number of agents with results.", agents),
        number("Sessions scored", "Number of closed sessions with a score of agent_reliability.", f"round({sessions})"),
    ]  # fmt: skip


def _means() -> Panel:
    lowest = "lowest tenth {{gen_ai_evaluation_name}}"
    return graph(
        "Score: mean, and the lowest tenth",
        "The dots are exemplars: single evaluated traces. Click one to open its trace.",
        {"mean {{gen_ai_evaluation_name}}": mean(SCORE, _METRIC, NAME), lowest: quantile(0.1, SCORE, _METRIC, NAME)},
        exemplars=(lowest,),
        top=1,
    )


def _passing() -> Panel:
    labels = chosen('gen_ai_evaluation_name=~"$metric"', DECIDED)
    return graph(
        "Passed and failed",
        "Number of passed and failed results, by metric. Assumed results do not count.",
        {"{{gen_ai_evaluation_name}} passed: {{pandaeval_passed}}": per_bar(EVALUATIONS + labels, f"{NAME}, {PASSED}")},
        stacked=True,
    )


def _distribution() -> Panel:
    return heat(
        "Distribution of $metric",
        "Distribution of scores over time. The dots are exemplars: click one to open its trace.",
        buckets(SCORE, _METRIC),
        repeat="metric",
    )


def _worst() -> Panel:
    total, count = (in_range(f"{SCORE}_{part}{_METRIC}", f"{SERVICE}, {AGENT}, {NAME}") for part in ("sum", "count"))
    panel = listing(
        "Worst agents",
        "The lowest mean scores. Only scored results count.",
        {SERVICE: "service", AGENT: "agent", NAME: "metric"},
        {"mean score": kept(f"bottomk(15, {total} / ({count} > 0))", in_range(f"{SCORE}_count{_METRIC}", ""))},
    )
    coloured(panel, "mean score", [(0, BAD), (0.5, WARN), (0.8, PLAIN)])
    return linked(panel, "agent", "Sessions of this agent", f"{_SESSIONS}&${{__url_time_range}}")


def _by_agent() -> Panel:
    lowest = "lowest tenth {{gen_ai_agent_name}}"
    return graph(
        "Score by agent: mean, and the lowest tenth",
        "All chosen metrics together. The dots are exemplars: click one to open its trace.",
        {"mean {{gen_ai_agent_name}}": mean(SCORE, _METRIC, AGENT), lowest: quantile(0.1, SCORE, _METRIC, AGENT)},
        exemplars=(lowest,),
        top=1,
    )


def _failures() -> Panel:
    return graph(
        "Failures by label",
        "Failed results whose label names the problem: ends of runs, behaviours that a judge names, loops. The "
        "collector's page and /api/v1/incidents show the causes, with examples.",
        {"{{pandaeval_failure_severity}}: {{pandaeval_failure_label}}": per_bar(_FAILURES, f"{_SEVERITY}, {_LABEL}")},
        width=14,
        stacked=True,
    )


def _gravest() -> Panel:
    by_cause, all_ = (in_range(_FAILURES, by) for by in (f"{_SEVERITY}, {_LABEL}, {AGENT}", ""))
    return listing(
        "Most frequent failures",
        "Number of failures in the shown time, by label and agent.",
        {_SEVERITY: "severity", _LABEL: "what went wrong", AGENT: "agent"},
        {"failures": kept(f"topk(15, round({by_cause}) > 0)", all_)},
        width=10,
    )


def _unscored() -> Panel:
    unscored = in_range(EVALUATIONS + chosen(UNSCORED), f"{SERVICE}, {WHY}, {NAME}")
    return listing(
        "Unscored, by reason",
        "no_content: content was not captured. not_sampled: not in the judge's sample. over_budget: the daily budget "
        "is used up. judge_failed, timeout, invalid_verdict: the judge failed. incomplete_trace: spans are missing. "
        "insufficient_evidence: there is too little evidence for a score.",
        {SERVICE: "service", WHY: "why", NAME: "metric"},
        {"results": kept(f"round({unscored})", in_range(EVALUATIONS + chosen(), ""))},
        width=12,
    )


def _revised() -> Panel:
    return graph(
        "Results that replaced earlier results",
        "Late spans and late verdicts create new revisions of results. The histogram keeps the first score.",
        {"{{gen_ai_evaluation_name}}": per_bar('pandaeval_revisions_total{pandaeval_service=~"$service"}', NAME)},
        width=12,
        stacked=True,
    )

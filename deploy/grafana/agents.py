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
        f"How good is what the agents do, and is it measured at all? {KEPT}",
        [*units(), metric, *sources()],
        [
            ("Did the agents do their job?", (_verdicts(), _verdicts_over_time(), _handled())),
            ("Is it measured at all?", (_measured(), _outcomes())),
            ("At a glance", _numbers()),
            ("Scores by metric", (_means(), _passing(), _distribution())),
            ("Agents", (_worst(), _by_agent())),
            ("What goes wrong", (_failures(), _gravest())),
            ("Not scored, and changed", (_unscored(), _revised())),
        ],
        failed("trace"),
    )


def _verdicts() -> Panel:
    return number(
        "Handled correctly",
        "Share of the sessions (without any: of the runs) that a judge found to be handled correctly (correctness). "
        "Only decided verdicts count: unclear and disputed verdicts are in the table.",
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
        "Whether agents did their job, by a judge. Runs are judged where they belong to no session. A verdict may come "
        "some bars after its session closed.",
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
        "verdicts: how many there are. An agent without any is not judged, whatever else was found or not found. "
        "handled correctly: of the decided verdicts, without those that are unclear or disputed.",
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
        "content": _not_captured(),
        "sessions": _count('pandaeval_level="session"'),
        "judged": _count(f'gen_ai_evaluation_name=~"{JUDGED}"'),
        "failed evaluations": _count(f'pandaeval_why=~"{FAILED}"'),
    }
    panel = listing(
        "What is measured, per service",
        "An agent without bad scores is fine only if it was scored. content: share of the runs that ended without "
        "a failure whose answer is not known, because the instrumentation does not capture it. sessions: 0 when no "
        "span names a session (or none has closed yet). judged: 0 when no judge is set. failed evaluations: the judge, "
        "not the agent, failed. The collector's log names the cure for each.",
        {SERVICE: "service"},
        columns,
        width=14,
    )
    coloured(panel, "content", [(0, GOOD), (0.2, WARN), (0.9, BAD)], "percentunit", {"1": "no content captured"})
    coloured(panel, "scored", [(1, GOOD)], words={"0": "nothing"})
    coloured(panel, "sessions", [(1, GOOD)], words={"0": "no session id"})
    coloured(panel, "judged", [(1, GOOD)], words={"0": "no judge"})
    return coloured(panel, "failed evaluations", [(0, GOOD), (1, BAD)])


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
        "Results by outcome, and why there is no score",
        "scored: measured. assumed: nothing to evaluate, so the metric's definition says 1. unscored: should have been "
        "measured and was not; it counts neither as good nor as bad.",
        {legend: per_bar(EVALUATIONS + chosen(), f"{SERVICE}, {OUTCOME}, {WHY}")},
        width=10,
        stacked=True,
    )


def _numbers() -> list[Panel]:
    everything, decided = (in_range(EVALUATIONS + chosen(*label), "") for label in ((), (DECIDED,)))
    passed, failing, unscored = (
        in_range(EVALUATIONS + chosen(label), "") for label in ('pandaeval_passed="true"', FAILING, UNSCORED)
    )
    low = in_range(f"{SCORE}_bucket{chosen(AT_MOST_HALF)}", "")
    scores = in_range(f"{SCORE}_count{chosen()}", "")
    sessions = in_range(f"{SCORE}_count" + chosen('gen_ai_evaluation_name="agent_reliability"'), "")
    agents = f"count({in_range(EVALUATIONS + chosen(), AGENT)})"
    bad = ((0, GOOD), (0.1, WARN), (0.3, BAD))
    return [
        number("Passed", "Share of results at or above their threshold.", kept(f"{passed} / {decided}", decided),
               "percentunit", steps=((0, BAD), (0.8, WARN), (0.95, GOOD))),
        number("Failed results", "Results below their threshold.", f"round({failing} or 0 * {everything})"),
        number("Unscored", "Share of results that should have been scored and were not.",
               kept(f"({unscored} or 0 * {everything}) / {everything}", everything), "percentunit", steps=bad),
        number("Scores of at most 0.5", "Share of all scores.", kept(f"{low} / {scores}", scores), "percentunit",
               steps=bad),
        number("Agents", "Agents with results.", agents),
        number("Sessions scored", "Sessions that have closed with a reliability.", f"round({sessions})"),
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
        "Results against their threshold, by metric.",
        {"{{gen_ai_evaluation_name}} passed: {{pandaeval_passed}}": per_bar(EVALUATIONS + labels, f"{NAME}, {PASSED}")},
        stacked=True,
    )


def _distribution() -> Panel:
    return heat(
        "Distribution of $metric",
        "How many scores fell where, over time. The dots are exemplars: click one to open its trace.",
        buckets(SCORE, _METRIC),
        repeat="metric",
    )


def _worst() -> Panel:
    total, count = (in_range(f"{SCORE}_{part}{_METRIC}", f"{SERVICE}, {AGENT}, {NAME}") for part in ("sum", "count"))
    panel = listing(
        "Worst agents",
        "The lowest mean scores. Only results that were scored count.",
        {SERVICE: "service", AGENT: "agent", NAME: "metric"},
        {"mean score": kept(f"bottomk(15, {total} / ({count} > 0))", in_range(f"{SCORE}_count{_METRIC}", ""))},
    )
    coloured(panel, "mean score", [(0, BAD), (0.5, WARN), (0.8, GOOD)])
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
        "Failures by what went wrong",
        "Results whose label says what went wrong: the ends of runs, behaviours that a judge names, loops. The causes, "
        "with examples, are on the collector's own page and at /api/v1/incidents.",
        {"{{pandaeval_failure_severity}}: {{pandaeval_failure_label}}": per_bar(_FAILURES, f"{_SEVERITY}, {_LABEL}")},
        width=14,
        stacked=True,
    )


def _gravest() -> Panel:
    by_cause, all_ = (in_range(_FAILURES, by) for by in (f"{_SEVERITY}, {_LABEL}, {AGENT}", ""))
    return listing(
        "Most frequent",
        "Failures, by agent.",
        {_SEVERITY: "severity", _LABEL: "what went wrong", AGENT: "agent"},
        {"failures": kept(f"topk(15, round({by_cause}) > 0)", all_)},
        width=10,
    )


def _unscored() -> Panel:
    unscored = in_range(EVALUATIONS + chosen(UNSCORED), f"{SERVICE}, {WHY}, {NAME}")
    return listing(
        "Unscored, by reason",
        "no_content: not captured. not_sampled: not in the judge's sample. over_budget: the day's money is used up. "
        "judge_failed, timeout, invalid_verdict: the judge failed. incomplete_trace: spans are missing. "
        "insufficient_evidence: too few of the expected signals.",
        {SERVICE: "service", WHY: "why", NAME: "metric"},
        {"results": kept(f"round({unscored})", in_range(EVALUATIONS + chosen(), ""))},
        width=12,
    )


def _revised() -> Panel:
    return graph(
        "Results that replaced an earlier one",
        "Late spans and late judgements make a new revision of what they change; the histogram keeps the first score.",
        {"{{gen_ai_evaluation_name}}": per_bar('pandaeval_revisions_total{pandaeval_service=~"$service"}', NAME)},
        width=12,
        stacked=True,
    )

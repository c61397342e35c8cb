"""The dashboard *Sessions*: severe failures and steadiness per conversation."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.failed import failed, sources
from deploy.grafana.frame import folded, frame, units
from deploy.grafana.panels import BAD, PLAIN, WARN, Panel, coloured, graph, heat, listing, number
from deploy.grafana.words import (
    AGENT,
    EVALUATIONS,
    KEPT,
    NAME,
    OUTCOME,
    SCORE,
    SERVICE,
    WHY,
    below_half,
    buckets,
    chosen,
    in_range,
    kept,
    mean,
    per_bar,
    quantile,
)

_RELIABILITY = chosen('gen_ai_evaluation_name="agent_reliability"')
_CONSISTENCY = chosen('gen_ai_evaluation_name="agent_consistency"')
_SESSION = 'pandaeval_level="session"'
_KINDS = "confidence|coherence|loop_detection|tool_correctness|tool_loop"
_SIGNALS = chosen('pandaeval_level="trace"', f'gen_ai_evaluation_name=~"{_KINDS}"')
_STEPS = ((0, BAD), (0.5, WARN), (0.7, PLAIN))
"""Never green: without a failure, a task can still have failed."""
_CLICK = "The dots are exemplars: click one to open the trace (for a session, its last trace)."


def build() -> dashboard.Dashboard:
    return frame(
        "pandaeval-session",
        "PandaEval / Sessions",
        f"Reliability and consistency of whole conversations, and the risks of their traces. {KEPT}",
        [*units("session"), *sources()],
        [
            ("Sessions", _numbers()),
            ("Over time", (_over_time(), _outcomes(), _reliability())),
            ("Risk per trace", (_traces(), _risk())),
            ("Agents", (_agents(),)),
        ],
        [folded("Consistency, which needs a judge", _steadiness()), *failed("session")],
    )


def _numbers() -> list[Panel]:
    count = in_range(f"{SCORE}_count{_RELIABILITY}", "")
    total = in_range(f"{SCORE}_sum{_RELIABILITY}", "")
    return [
        number("Sessions scored", "Number of closed sessions with a score of agent_reliability.", f"round({count})",
               width=8),
        number("Mean reliability", "1: no signal was risky. This does not show that tasks succeeded.",
               kept(f"{total} / ({count} > 0)", count), width=8, steps=_STEPS),
        number("Unreliable", "Share of sessions with a score of at most 0.5.", below_half(_RELIABILITY, ""),
               "percentunit", width=8, steps=((0.05, WARN), (0.2, BAD))),
    ]  # fmt: skip


def _over_time() -> Panel:
    lowest = "lowest tenth {{gen_ai_evaluation_name}}"
    labels = chosen(_SESSION)
    return graph(
        "Reliability and consistency: mean, and the lowest tenth",
        _CLICK,
        {"mean {{gen_ai_evaluation_name}}": mean(SCORE, labels, NAME), lowest: quantile(0.1, SCORE, labels, NAME)},
        exemplars=(lowest,),
        top=1,
    )


def _outcomes() -> Panel:
    return graph(
        "Sessions by outcome and reason of a missing score",
        "insufficient_evidence: fewer than half of the traces have an expected signal, for instance because the judge "
        "was down.",
        {"{{gen_ai_evaluation_name}} {{pandaeval_outcome}} {{pandaeval_why}}": per_bar(
            EVALUATIONS + chosen(_SESSION), f"{NAME}, {OUTCOME}, {WHY}")},
        stacked=True,
    )  # fmt: skip


def _reliability() -> Panel:
    return heat("Distribution of agent_reliability", _CLICK, buckets(SCORE, _RELIABILITY))


def _steadiness() -> tuple[Panel, Panel]:
    steady, sessions = (in_range(f"{SCORE}_{part}{_CONSISTENCY}", f"{SERVICE}, {AGENT}") for part in ("sum", "count"))
    agents = listing(
        "Consistency by agent",
        "Mean of closed sessions. It needs a judge for confidence.",
        {SERVICE: "service", AGENT: "agent"},
        {"consistency": kept(f"{steady} / ({sessions} > 0)", sessions, f"{SERVICE}, {AGENT}")},
    )
    coloured(agents, "consistency", _STEPS)
    return heat("Distribution of agent_consistency", _CLICK, buckets(SCORE, _CONSISTENCY)), agents


def _traces() -> Panel:
    return heat(
        "Signals of traces (risk = 1 - score)",
        "Scores from which session scores are computed. By default, coherence and loop_detection lower a session score "
        "only if they fail. The dots are exemplars: click one to open its trace.",
        buckets(SCORE, _SIGNALS),
    )


def _risk() -> Panel:
    low = f'{SCORE}_bucket{_SIGNALS[:-1]}, le="0.5"}}'
    rate = f"sum by ({NAME}) (rate({low}[$__rate_interval]))"
    whole = f"sum by ({NAME}) (rate({SCORE}_count{_SIGNALS}[$__rate_interval]))"
    return graph(
        "Share of traces with a risk of 0.5 or more, by signal",
        "By default, coherence and loop_detection lower the score of a session only if they fail.",
        {"{{gen_ai_evaluation_name}}": kept(f"{rate} / ({whole} > 0)", in_range(f"{SCORE}_count{_SIGNALS}", ""))},
        "percentunit",
        top=1,
    )


def _agents() -> Panel:
    by = f"{SERVICE}, {AGENT}"
    total, count = (in_range(f"{SCORE}_{part}{_RELIABILITY}", by) for part in ("sum", "count"))
    panel = listing(
        "Agents by session",
        "Mean reliability of closed sessions.",
        {SERVICE: "service", AGENT: "agent"},
        {"sessions": kept(f"round({count})", count, by), "reliability": kept(f"{total} / ({count} > 0)", count, by)},
        width=24,
    )
    return coloured(panel, "reliability", _STEPS)

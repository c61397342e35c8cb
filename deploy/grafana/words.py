"""PromQL in the words that our dashboards share: names, selections and the same few forms of rate."""

from __future__ import annotations

SCORE = "pandaeval_evaluation_score"
EVALUATIONS = "pandaeval_evaluations_total"
NAME, AGENT, SERVICE = "gen_ai_evaluation_name", "gen_ai_agent_name", "pandaeval_service"
OUTCOME, WHY, PASSED = "pandaeval_outcome", "pandaeval_why", "pandaeval_passed"
CHOSEN = 'pandaeval_service=~"$service", gen_ai_agent_name=~"$agent", deployment_environment_name=~"$environment"'
"""What the variables at the top of a dashboard select; a label that is absent counts as empty, which ``.*`` matches."""
JUDGED = (
    "correctness|task_completion|tool_correctness|argument_correctness|step_efficiency|confidence|plan_adherence|"
    "plan_quality"
)
UNSCORED = 'pandaeval_outcome="unscored"'
SCORED = 'pandaeval_outcome="scored"'
DECIDED = 'pandaeval_passed=~"true|false"'
RIGHT = 'pandaeval_passed="true"'
FAILING = 'pandaeval_passed="false"'
AT_MOST_HALF = 'le="0.5"'
FAILED = "judge_failed|invalid_verdict|timeout|metric_error"


def chosen(*more: str) -> str:
    """The braces of a selector: the variables' selection and more."""
    return "{" + ", ".join((CHOSEN, *more)) + "}"


def per_bar(counter: str, by: str) -> str:
    """How much was counted in each bar of a graph."""
    return f"sum by ({by}) (increase({counter}[$__interval]))"


def in_range(counter: str, by: str) -> str:
    """How much was counted in the time that is shown."""
    return f"sum by ({by}) (increase({counter}[$__range]))" if by else f"sum(increase({counter}[$__range]))"


def since_start(counter: str, by: str) -> str:
    """How much was counted since the store began, by the last sample in the time that is shown."""
    held = f"last_over_time({counter}[$__range])"
    return f"sum by ({by}) ({held})" if by else f"sum({held})"


def verdicts(level: str, *more: str) -> str:
    """What judges say of whether agents did their job."""
    return EVALUATIONS + chosen('gen_ai_evaluation_name="correctness"', f'pandaeval_level="{level}"', *more)


def handled(by: str) -> str:
    """The share of sessions, or where none is judged of runs, that were handled correctly: in the time that is shown,
    or where that holds no verdict, as after a restart, since the store began."""
    shares = (
        share(counted(verdicts(level, RIGHT), by), counted(verdicts(level, DECIDED), by))
        for counted in (in_range, since_start)
        for level in ("session", "trace")
    )
    return " or ".join(shares)


def per_second(counter: str, by: str) -> str:
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


def mean(histogram: str, labels: str, by: str) -> str:
    """The mean of what a histogram saw. It shows no exemplars: pair it with :func:`quantile`."""
    total, count = (f"sum by ({by}) (rate({histogram}_{part}{labels}[$__rate_interval]))" for part in ("sum", "count"))
    return f"{total} / ({count} > 0)"


def quantile(q: float, histogram: str, labels: str, by: str = "") -> str:
    """A quantile from the buckets, which carry the exemplars."""
    inside = ", ".join(filter(None, (by, "le")))
    return f"histogram_quantile({q}, sum by ({inside}) (rate({histogram}_bucket{labels}[$__rate_interval])))"


def buckets(histogram: str, labels: str) -> str:
    """A histogram's growth by bucket, for a heat map."""
    return f"sum by (le) (increase({histogram}_bucket{labels}[$__interval]))"


def share(part: str, whole: str) -> str:
    """``part`` of ``whole``, both sums over the same labels; 0 where there is a whole and no part of it."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def below_half(labels: str, by: str) -> str:
    """The share of scores of at most 0.5 in the time that is shown."""
    low = in_range(f"{SCORE}_bucket{labels[:-1]}, {AT_MOST_HALF}}}", by)
    whole = in_range(f"{SCORE}_count{labels}", by)
    return f"{low} / ({whole} > 0)"

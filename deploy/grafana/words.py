"""PromQL building blocks of the dashboards."""

from __future__ import annotations

import re

SCORE = "pandaeval_evaluation_score"
EVALUATIONS = "pandaeval_evaluations_total"
NAME, AGENT, SERVICE = "gen_ai_evaluation_name", "gen_ai_agent_name", "pandaeval_service"
OUTCOME, WHY, PASSED = "pandaeval_outcome", "pandaeval_why", "pandaeval_passed"
CHOSEN = 'pandaeval_service=~"$service", gen_ai_agent_name=~"$agent", deployment_environment_name=~"$environment"'
"""Selection by the variables at the top of a dashboard. An absent label counts as empty, which ``.*`` matches."""
JUDGED = (
    "agent_behavior_failure|argument_correctness|confidence|correctness|faithfulness|goal_completion|helpfulness|"
    "plan_adherence|plan_quality|relevance|step_efficiency|task_completion|tool_correctness|turn_coherence|"
    "user_friction|verbosity"
)
"""Metrics that only a judge can score."""
UNSCORED = 'pandaeval_outcome="unscored"'
SCORED = 'pandaeval_outcome="scored"'
DECIDED = SCORED + ', pandaeval_passed=~"true|false"'
RIGHT = SCORED + ', pandaeval_passed="true"'
"""Assumed results also have passed."""
FAILING = 'pandaeval_passed="false"'
AT_MOST_HALF = 'le="0.5"'
_COUNTED = re.compile(r"(?:increase|rate)\((.*?)\[\$__(?:range|rate_interval)\]\)")
KEPT = (
    "Shares, means and tables cover the shown time. If no data arrived in this time, for example after a restart, they "
    "cover all data of the store."
)
"""Description of :func:`kept` for users."""
FAILED = "judge_failed|invalid_verdict|timeout|metric_error"


def chosen(*more: str) -> str:
    """A selector's braces: the variables' selection and more."""
    return "{" + ", ".join((CHOSEN, *more)) + "}"


def per_bar(counter: str, by: str) -> str:
    """Increase per bar of a graph."""
    return f"sum by ({by}) (increase({counter}[$__interval]))"


def in_range(counter: str, by: str) -> str:
    """Increase in the shown time."""
    return f"sum by ({by}) (increase({counter}[$__range]))" if by else f"sum(increase({counter}[$__range]))"


def kept(asked: str, counted: str, by: str = "") -> str:
    """``asked``, or without counts in the shown time, the last total per label of ``by``."""
    since = _COUNTED.sub(r"last_over_time(\1[$__range])", asked)
    came = f"on ({by}) ({counted} > 0)"
    return f"({asked}) and {came} or ({since}) unless {came}"


def verdicts(level: str, *more: str) -> str:
    """Selects judges' verdicts."""
    return EVALUATIONS + chosen('gen_ai_evaluation_name="correctness"', f'pandaeval_level="{level}"', *more)


def handled(by: str) -> str:
    """Share of sessions (else runs) that were handled correctly."""
    shares = (
        share(in_range(verdicts(level, RIGHT), by), in_range(verdicts(level, DECIDED), by))
        for level in ("session", "trace")
    )
    judged = EVALUATIONS + chosen('gen_ai_evaluation_name="correctness"', DECIDED)
    return kept(" or ".join(shares), in_range(judged, by), by)


def per_second(counter: str, by: str) -> str:
    return f"sum by ({by}) (rate({counter}[$__rate_interval]))"


def mean(histogram: str, labels: str, by: str) -> str:
    """A histogram's mean, without exemplars: pair it with :func:`quantile`."""
    total, count = (f"sum by ({by}) (rate({histogram}_{part}{labels}[$__rate_interval]))" for part in ("sum", "count"))
    return kept(f"{total} / ({count} > 0)", in_range(f"{histogram}_count{labels}", ""))


def quantile(q: float, histogram: str, labels: str, by: str) -> str:
    """A quantile from buckets, with exemplars."""
    growth = f"sum by ({by}, le) (rate({histogram}_bucket{labels}[$__rate_interval]))"
    return kept(f"histogram_quantile({q}, {growth})", in_range(f"{histogram}_count{labels}", ""))


def buckets(histogram: str, labels: str) -> str:
    """A histogram's growth by bucket."""
    return f"sum by (le) (increase({histogram}_bucket{labels}[$__interval]))"


def share(part: str, whole: str) -> str:
    """``part`` of ``whole``, over the same labels; 0 without ``part``."""
    return f"({part} or 0 * {whole}) / ({whole} > 0)"


def below_half(labels: str, by: str) -> str:
    """Share of scores of at most 0.5 in the shown time."""
    low = in_range(f"{SCORE}_bucket{labels[:-1]}, {AT_MOST_HALF}}}", by)
    whole = in_range(f"{SCORE}_count{labels}", by)
    return kept(f"{low} / ({whole} > 0)", whole, by)

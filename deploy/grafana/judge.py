"""The dashboard *Judge*: cost, latency and errors."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from deploy.grafana.frame import choice, frame
from deploy.grafana.panels import BAD, WARN, Panel, graph, heat, listing, number
from deploy.grafana.words import EVALUATIONS, FAILED, JUDGED, NAME, OUTCOME, WHY, in_range, per_bar, per_second

_MODEL = "gen_ai_request_model"
_CHOSEN = '{gen_ai_request_model=~"$model", gen_ai_evaluation_name=~"$metric"}'
_COST, _TOKENS = f"pandaeval_judge_cost_total{_CHOSEN}", f"pandaeval_judge_tokens_total{_CHOSEN}"
_TOOK = f"pandaeval_judge_duration_seconds_bucket{_CHOSEN}"
_ANSWERS, _JOBS = "pandaeval_judge_answers_total", "pandaeval_jobs_total"
_RESULTS = f'{EVALUATIONS}{{gen_ai_evaluation_name=~"{JUDGED}"}}'


def build() -> dashboard.Dashboard:
    return frame(
        "pandaeval-judge",
        "PandaEval / Judge",
        "Cost, latency and errors of the judge. Empty without a judge (judge.model).",
        [
            choice("model", "Judge model", f"label_values(pandaeval_judge_tokens_total, {_MODEL})"),
            choice("metric", "Metric", f"label_values(pandaeval_judge_tokens_total, {NAME})"),
        ],
        [
            ("Today", _numbers()),
            ("Cost", (_cost(), _tokens(), _by_metric())),
            ("Speed", (_latency(), _queue())),
            ("Outcome", (_outcomes(), _jobs(), _remembered(), _sampled())),
        ],
    )


def _numbers() -> list[Panel]:
    spent, limit = "max(pandaeval_judge_budget_spent)", "max(pandaeval_judge_budget_limit)"
    judged = in_range(f"pandaeval_judge_duration_seconds_count{_CHOSEN}", "")
    failed = in_range(_RESULTS[:-1] + f', pandaeval_why=~"{FAILED}"}}', "")
    asked, kept = (in_range(f'{_ANSWERS}{{pandaeval_outcome{match}"}}', "") for match in ('=~".+', '="remembered'))
    return [
        number("Cost", "Cost in the shown time, by list price of the model.", in_range(_COST, ""), "currencyUSD"),
        number("Spent today", "Today (UTC), with calls in progress. Needs judge.daily_usd.", spent, "currencyUSD"),
        number("Budget used", "Share of judge.daily_usd.", f"{spent} / {limit}", "percentunit",
               steps=((0.8, WARN), (0.95, BAD))),
        number("Cost of a judged result", "Mean cost in the shown time.", f"{in_range(_COST, '')} / {judged}",
               "currencyUSD"),
        number("Failed evaluations", "The judge or a metric failed, not the agent.",
               f"round({failed} or 0 * {in_range(_RESULTS, '')})", steps=((1, BAD),)),
        number("From memory", "Share of answers that came from an earlier call, without cost.",
               f"({kept} or 0 * {asked}) / {asked}", "percentunit"),
    ]  # fmt: skip


def _cost() -> Panel:
    return graph(
        "Cost per hour, by model and metric",
        "US dollars.",
        {"{{gen_ai_request_model}} {{gen_ai_evaluation_name}}": f"3600 * {per_second(_COST, f'{_MODEL}, {NAME}')}"},
        "currencyUSD",
        width=8,
    )


def _tokens() -> Panel:
    return graph(
        "Tokens per minute, by model and metric",
        "Tokens of prompts and answers.",
        {"{{gen_ai_request_model}} {{gen_ai_evaluation_name}}": f"60 * {per_second(_TOKENS, f'{_MODEL}, {NAME}')}"},
        width=8,
    )


def _by_metric() -> Panel:
    count = in_range(f"pandaeval_judge_duration_seconds_count{_CHOSEN}", f"{NAME}, {_MODEL}")
    cost, tokens = (in_range(counter, f"{NAME}, {_MODEL}") for counter in (_COST, _TOKENS))
    return listing(
        "Tokens and cost of a result, by metric",
        "Means over the shown time. If metrics share a call, the first metric has its tokens and cost.",
        {NAME: "metric", _MODEL: "model"},
        {"results": f"round({count})", "US dollars": f"{cost} / ({count} > 0)", "tokens": f"{tokens} / ({count} > 0)"},
        width=8,
    )


def _latency() -> Panel:
    return heat(
        "Time that a result waited for its model",
        "The dots are exemplars: click one to open the judged trace.",
        f"sum by (le) (increase({_TOOK}[$__interval]))",
        "s",
    )


def _queue() -> Panel:
    def quantile(q: float) -> str:
        return f"histogram_quantile({q}, {per_second(_TOOK, f'{_MODEL}, le')})"

    slow = "95 of 100 within {{gen_ai_request_model}}"
    return graph(
        "Waiting time for the model, and waiting jobs",
        "Time per result. Jobs wait for earlier jobs, for judge.delay, or for their next attempt.",
        {"half within {{gen_ai_request_model}}": quantile(0.5), slow: quantile(0.95),
         "jobs waiting": 'sum(pandaeval_queue_size{pandaeval_queue="judge"})'},
        exemplars=(slow,),
    )  # fmt: skip


def _outcomes() -> Panel:
    return graph(
        "Judged results by outcome and reason of a missing score",
        "over_budget: the daily budget is used up, or the judge was too slow. not_sampled: not in the sample. "
        "injection_suspected: the trace contains instructions for the judge.",
        {"{{pandaeval_outcome}} {{pandaeval_why}}": per_bar(_RESULTS, f"{OUTCOME}, {WHY}")},
        stacked=True,
    )


def _jobs() -> Panel:
    return graph(
        "Jobs by outcome",
        "put_back: tried again later. dead: failed for good (`pandaeval jobs`). cancelled: the trace changed.",
        {"{{pandaeval_outcome}} {{pandaeval_reason}}": per_bar(_JOBS, "pandaeval_outcome, pandaeval_reason")},
        stacked=True,
    )


def _remembered() -> Panel:
    return graph(
        "Verdicts from new or earlier calls",
        "If a question about the same evidence was answered before in the same words, its answer costs nothing.",
        {"{{pandaeval_outcome}}": per_bar(_ANSWERS, "pandaeval_outcome")},
        stacked=True,
    )


def _sampled() -> Panel:
    whole = f"sum(rate({_RESULTS}[$__rate_interval]))"
    without = f'sum(rate({_RESULTS[:-1]}, pandaeval_why="not_sampled"}}[$__rate_interval]))'
    over = f'sum(rate({_RESULTS[:-1]}, pandaeval_why="over_budget"}}[$__rate_interval]))'
    return graph(
        "Share of results that were not judged",
        "Not in the sample (judge.sample), or the budget was used up, or the judge was too slow.",
        {"not sampled": f"({without} or 0 * {whole}) / ({whole} > 0)",
         "over budget": f"({over} or 0 * {whole}) / ({whole} > 0)"},
        "percentunit",
        top=1,
    )  # fmt: skip

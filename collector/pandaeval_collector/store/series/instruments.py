"""The instruments of the score series."""

from __future__ import annotations

from collections.abc import Mapping

from pandaeval_collector.base.instrument import Instrument

SCORE = Instrument(
    "pandaeval.evaluation.score",
    "histogram",
    "{score}",
    "Scores of traces and sessions, 0 to 1, 1 is best; each unit once per metric",
    (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
)
EVALUATIONS = Instrument(
    "pandaeval.evaluations", "counter", "{evaluation}", "Results by outcome, why there is no score, and pass or fail"
)
REVISIONS = Instrument(
    "pandaeval.revisions", "counter", "{revision}", "Results that replace an earlier one of the same unit and metric"
)
JUDGE_DURATION = Instrument(
    "pandaeval.judge.duration",
    "histogram",
    "s",
    "How long a judged result waited for its model",
    (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
)
JUDGE_TOKENS = Instrument("pandaeval.judge.tokens", "counter", "{token}", "Tokens that judged results took")
JUDGE_COST = Instrument("pandaeval.judge.cost", "counter", "{USD}", "US dollars that judged results did cost")
JUDGE_CACHED = Instrument(
    "pandaeval.judge.cached_tokens", "counter", "{token}", "Those of them that came from the provider's prompt cache"
)
FAILURES = Instrument(
    "pandaeval.failures", "counter", "{failure}", "Results whose label says what went wrong, each unit once per metric"
)
SHADOW_SCORE = Instrument(
    "pandaeval.shadow.score",
    "histogram",
    "{score}",
    "Scores that the judge in the shadow of the live one gives; each trace once per metric",
    SCORE.bounds,
)
SHADOW_EVALUATIONS = Instrument(
    "pandaeval.shadow.evaluations",
    "counter",
    "{evaluation}",
    "Results of the judge in the shadow by outcome, why there is no score, and pass or fail",
)
INSTRUMENTS: Mapping[str, Instrument] = {
    each.name: each
    for each in (
        *(SCORE, EVALUATIONS, REVISIONS, FAILURES, JUDGE_DURATION, JUDGE_TOKENS, JUDGE_COST, JUDGE_CACHED),
        *(SHADOW_SCORE, SHADOW_EVALUATIONS),
    )
}

"""Does the answer agree with the knowledge and the tool results?

A judge rates the answer of each turn. An answer that contradicts the given knowledge, a retrieved document or a tool
result gets a low rating. It does not penalise omissions. If there are no known facts that an answer could contradict,
there is no score.

Scale: ratings from 1 to 5, and 5 is best. The score is (rating - 1) / 4. The threshold is a rating.
Source: Agentest, evaluation metrics, *Faithfulness*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Unscored, Why
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metric import TurnContext
from pandaeval_collector.scoring.metrics.turn._rating import answer_gap, judged_rating_metric

_NOTHING = Unscored(Why.INSUFFICIENT_EVIDENCE, "there is no knowledge and no tool result to compare with")


def _before_asking(view: TurnView, context: TurnContext) -> Finding | None:
    gap = answer_gap(view, context)
    if gap is None and not view.knowledge and not view.has_results:
        return _NOTHING
    return gap


METRIC = judged_rating_metric(
    "faithfulness",
    about=__doc__,
    version="4",
    question="Does the answer agree with the knowledge and the tool results?",
    needs="an answer, and knowledge or tool results; a judge",
    before_asking=_before_asking,
    criteria="""
Is the answer faithful? Does it match the given knowledge and the results of the tools? Only contradictions count.
Leaving out known facts costs nothing.

These lower the rating: a different value than the result; a different fact than the knowledge ("closes at six", "open
until eight"); a result that no tool returned. A fact that was neither given nor found may be common knowledge. It is a
contradiction only if it cannot be true beside the known facts, or if the answer presents it as a tool's result.

Example: the tool returned 58 degrees and sunny. "58 degrees" is 5, "72 degrees" is 2.

Guide:
5  no contradiction with knowledge or results
4  minor misstatements
3  some incorrect information
2  several factual errors
1  grave fabrications
""",
)

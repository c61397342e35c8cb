"""Does the answer move the user closer to the goal?

A judge rates the answer of each turn: does it bring the user closer to what the user is after, with something that
can be acted on? It does not judge whether what it says is true (``faithfulness``) nor how long it is (``verbosity``).

Scale: 1..5, 5 is best; the score is (rating - 1) / 4, the threshold is one of ratings.
Source: Agentest, evaluation metrics, *Helpfulness*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metric import Metric, TurnContext
from pandaeval_collector.scoring.metrics.turn._about import answers, unsaid
from pandaeval_collector.scoring.metrics.turn._rating import SCALE, rated, rating
from pandaeval_collector.scoring.metrics.turn._sent import templates

PART = rated(
    "helpfulness",
    "2",
    """
How helpful is the answer? Does it move the user closer to the goal, and can the user act on what it says?

Things that cost: general talk where something specific is needed; asking for what was said already; suggestions that do
not help here. A question that has to be answered before the agent can go on, or a refusal that the instructions demand
and that says what is possible instead, helps.

Example: asked when the library opens tomorrow, it answers "usually in the morning": 2.

Guide:
5  directly advances the goal, with specific information that can be acted on
4  helpful, and could be more specific or complete
3  somewhat helpful, key details are missing
2  hardly helpful: vague or off the track
1  unhelpful, or works against the goal
""",
)


def _before_asking(view: TurnView, context: TurnContext) -> Finding | None:
    return unsaid(view, context)


async def _ask(view: TurnView, judge: Judge) -> Finding | None:
    return await rating(PART, view, judge)


METRIC = Metric(
    level="turn",
    name="helpfulness",
    kind="llm",
    version="2",
    threshold=3.0,
    scale=SCALE,
    question="Does the answer move the user closer to the goal?",
    needs="what the user said and the agent answered; a judge",
    evaluate=_before_asking,
    ask=_ask,
    applies=answers,
    part=PART,
    rubrics=templates(PART),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

"""Does every part of the answer address the user's message and goal?

A judge rates the answer of each turn: is all of it about what the user asked for? It does not judge whether it is
right or complete (``helpfulness``, ``faithfulness``).

Scale: 1..5, 5 is best; the score is (rating - 1) / 4, the threshold is one of ratings.
Source: Agentest, evaluation metrics, *Relevance*.
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
    "relevance",
    "2",
    """
How relevant is the answer? Does every part of it address the user's message and the goal?

Things that cost: explaining what nobody asked for; tangents that have nothing to do with the goal; answering another
question than the one that was asked. A question back, a warning or a limit that concerns the request is to the point.

Example: asked for a price, it gives the price and then the history of the shop: 3.

Guide:
5  all of it is on the topic and addresses what the user needs
4  mostly relevant, with minor tangents
3  some of it is irrelevant
2  mostly off the topic
1  entirely irrelevant
""",
)


def _before_asking(view: TurnView, context: TurnContext) -> Finding | None:
    return unsaid(view, context)


async def _ask(view: TurnView, judge: Judge) -> Finding | None:
    return await rating(PART, view, judge)


METRIC = Metric(
    level="turn",
    name="relevance",
    kind="llm",
    version="2",
    threshold=3.0,
    scale=SCALE,
    question="Does every part of the answer address the user's message and goal?",
    needs="what the user said and the agent answered; a judge",
    evaluate=_before_asking,
    ask=_ask,
    applies=answers,
    part=PART,
    rubrics=templates(PART),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

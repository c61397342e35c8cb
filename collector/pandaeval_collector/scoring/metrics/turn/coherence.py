"""Is the answer consistent in itself and with the conversation before it?

A judge rates the answer of each turn: does it hold together, and does it agree with what the agent said before? It
does not judge whether the answer is on the topic (``relevance``); the metric of the same name at level trace compares
topics by embeddings, and shares nothing with this one but the name.

Scale: 1..5, 5 is best; the score is (rating - 1) / 4, the threshold is one of ratings.
Source: Agentest, evaluation metrics, *Coherence*.
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
    "coherence",
    "1",
    """
How coherent is the answer? Is it logically consistent, in itself and with what was said in the turns before?

Things that cost: contradicting what the agent said before ("open Monday to Friday", then "closed on Wednesdays");
forgetting what was said or agreed; conclusions that do not follow. Correcting a mistake openly is no contradiction, nor
is a change of what results say.

Guide:
5  fully consistent with the conversation
4  mostly consistent, minor lapses
3  some inconsistencies or contradictions
2  several contradictions, or confused logic
1  incoherent, or makes no sense
""",
)


def _before_asking(view: TurnView, context: TurnContext) -> Finding | None:
    return unsaid(view, context)


async def _ask(view: TurnView, judge: Judge) -> Finding | None:
    return await rating(PART, view, judge)


METRIC = Metric(
    level="turn",
    name="coherence",
    kind="llm",
    version="1",
    threshold=3.0,
    scale=SCALE,
    question="Is the answer consistent in itself and with the conversation before it?",
    needs="what the user said and the agent answered; a judge",
    evaluate=_before_asking,
    ask=_ask,
    applies=answers,
    part=PART,
    rubrics=templates(PART),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

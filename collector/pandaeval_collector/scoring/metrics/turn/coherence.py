"""Is the answer consistent in itself and with the conversation before it?

A judge rates the answer of each turn. An answer that contradicts itself or the agent's earlier messages gets a low
rating. It does not judge whether the answer is on topic; ``relevance`` and ``trace.coherence`` do.

Scale: ratings from 1 to 5, and 5 is best. The score is (rating - 1) / 4. The threshold is a rating.
Source: Agentest, evaluation metrics, *Coherence*.
"""

from pandaeval_collector.scoring.metrics.turn._rating import judged_rating_metric

METRIC = judged_rating_metric(
    "coherence",
    about=__doc__,
    version="3",
    question="Is the answer consistent in itself and with the conversation before it?",
    needs="the message of the user and the answer; a judge",
    criteria="""
How coherent is the answer? Is it logically consistent, in itself and with the earlier turns?

These lower the rating: contradicting the agent's earlier words; forgetting facts or agreements; conclusions that do not
follow. An open correction of a mistake is no contradiction, nor is a change that results show.

Example: after "open Monday to Friday", "closed on Sundays" is 5, "closed on Wednesdays" is 2.

Guide:
5  fully consistent with the conversation
4  mostly consistent, minor lapses
3  some inconsistencies or contradictions
2  several contradictions, or confused logic
1  incoherent, or makes no sense
""",
)

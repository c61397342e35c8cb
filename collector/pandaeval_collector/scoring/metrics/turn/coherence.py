"""Is the answer consistent in itself and with the conversation before it?

A judge rates the answer of each turn: is the answer consistent, and does it agree with the agent's earlier messages? It
does not judge whether the answer is on topic (``relevance``). The metric ``trace.coherence`` is a different metric,
which compares topics.

Scale: 1..5, 5 is best; the score is (rating - 1) / 4, the threshold is a rating.
Source: Agentest, evaluation metrics, *Coherence*.
"""

from __future__ import annotations

from pandaeval_collector.scoring.metrics.turn._rating import rated

METRIC = rated(
    "coherence",
    about=__doc__,
    version="2",
    question="Is the answer consistent in itself and with the conversation before it?",
    needs="the message of the user and the answer; a judge",
    criteria="""
How coherent is the answer? Is it logically consistent, in itself and with what was said in the turns before?

Things that cost: contradicting what the agent said before; forgetting what was said or agreed; conclusions that do not
follow. Correcting a mistake openly is no contradiction, nor is a change of what results say.

Example: after "open Monday to Friday", "closed on Sundays" is 5, "closed on Wednesdays" is 2.

Guide:
5  fully consistent with the conversation
4  mostly consistent, minor lapses
3  some inconsistencies or contradictions
2  several contradictions, or confused logic
1  incoherent, or makes no sense
""",
)

"""Does the answer move the user closer to the goal?

A judge rates the answer of each turn: does the answer bring the user closer to the goal, with information that the user
can act on? It does not judge whether the answer is true (``faithfulness``), or its length (``verbosity``).

Scale: 1..5, 5 is best; the score is (rating - 1) / 4, the threshold is a rating.
Source: Agentest, evaluation metrics, *Helpfulness*.
"""

from __future__ import annotations

from pandaeval_collector.scoring.metrics.turn._rating import rated

METRIC = rated(
    "helpfulness",
    about=__doc__,
    version="3",
    question="Does the answer move the user closer to the goal?",
    needs="the message of the user and the answer; a judge",
    criteria="""
How helpful is the answer? Does it move the user closer to the goal, and can the user act on what it says?

Things that cost: general talk where something specific is needed; asking for what was said already; suggestions that do
not help here. A question that has to be answered before the agent can go on, or a refusal that the instructions demand
and that says what is possible instead, helps.

Example: asked when the library opens tomorrow, "at nine, and until six" is 5, "usually in the morning" is 2.

Guide:
5  directly advances the goal, with specific information that can be acted on
4  helpful, and could be more specific or complete
3  somewhat helpful, key details are missing
2  hardly helpful: vague or off the track
1  unhelpful, or works against the goal
""",
)

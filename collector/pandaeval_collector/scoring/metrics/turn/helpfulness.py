"""Does the answer move the user closer to the goal?

A judge rates the answer of each turn. Information that the user can act on gets a high rating. It does not judge
whether the answer is true (``faithfulness``), or its length (``verbosity``).

Scale: ratings from 1 to 5, and 5 is best. The score is (rating - 1) / 4. The threshold is a rating.
Source: Agentest, evaluation metrics, *Helpfulness*.
"""

from pandaeval_collector.scoring.metrics.turn._rating import judged_rating_metric

METRIC = judged_rating_metric(
    "helpfulness",
    about=__doc__,
    version="4",
    question="Does the answer move the user closer to the goal?",
    needs="the message of the user and the answer; a judge",
    criteria="""
How helpful is the answer? Does it move the user closer to the goal, and can the user act on it?

These lower the rating: general talk instead of specific information; a question for information that the agent has;
suggestions that do not help here. A question that the agent needs answered to continue is helpful. So is a refusal that
the instructions require, if it names the alternatives.

Example: asked when the library opens tomorrow, "at nine, and until six" is 5, "usually in the morning" is 2.

Guide:
5  directly advances the goal, with specific, actionable information
4  helpful, but could be more specific or complete
3  somewhat helpful, important details are missing
2  hardly helpful: vague or off the topic
1  unhelpful, or works against the goal
""",
)

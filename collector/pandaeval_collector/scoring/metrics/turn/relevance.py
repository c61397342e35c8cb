"""Does every part of the answer address the user's message and goal?

A judge rates the answer of each turn. An answer gets a high rating if every part of it concerns the user's message or
goal. It does not judge whether the answer is right or complete (``helpfulness``, ``faithfulness``).

Scale: ratings from 1 to 5, and 5 is best. The score is (rating - 1) / 4. The threshold is a rating.
Source: Agentest, evaluation metrics, *Relevance*.
"""

from pandaeval_collector.scoring.metrics.turn._rating import judged_rating_metric

METRIC = judged_rating_metric(
    "relevance",
    about=__doc__,
    version="4",
    question="Does every part of the answer address the user's message and goal?",
    needs="the message of the user and the answer; a judge",
    criteria="""
How relevant is the answer? Does every part of it address the user's message and the goal?

These lower the rating: unrequested explanations; tangents without a link to the goal; answering a different question. A
question back, a warning or a limit that concerns the request is relevant.

Example: asked for a price, the price alone is 5, the price and the history of the shop 3, the history alone 1.

Guide:
5  all of it is on the topic and addresses the user's need
4  mostly relevant, with minor tangents
3  some of it is irrelevant
2  mostly off the topic
1  entirely irrelevant
""",
)

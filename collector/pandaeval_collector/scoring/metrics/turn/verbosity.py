"""Is the answer as long as necessary, and no longer?

A judge rates the length of the answer of each turn. Too short and too long answers get the same low ratings, as in the
published metric. It does not judge the content of the answer.

Scale: ratings from 1 to 5, and 5 is best. The score is (rating - 1) / 4. The threshold is a rating.
Source: Agentest, evaluation metrics, *Verbosity*.
"""

from pandaeval_collector.scoring.metrics.turn._rating import judged_rating_metric

METRIC = judged_rating_metric(
    "verbosity",
    about=__doc__,
    version="4",
    question="Is the answer as long as necessary, and no longer?",
    needs="the message of the user and the answer; a judge",
    criteria="""
Is the answer appropriately concise? 5 means that every word serves a purpose.

These lower the rating: needless details; repetition; empty phrases; and equally, a bare word if the user needs context.
Judge by this message: a long answer to a question that needs a long answer is not too long.

Example: to a yes-or-no question, "yes, until Friday" is 5, yes and two paragraphs of background 3, two pages 1.

Guide:
5  the right length, every word is needed
4  slightly wordy, acceptable
3  somewhat verbose, could be more concise
2  too long or too short
1  badly bloated, or too short to use
""",
)

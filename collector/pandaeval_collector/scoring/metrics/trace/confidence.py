"""How confident was the agent?

A judge reads the whole run and rates the agent's confidence. The judge looks for decisive steps, actions based on known
facts, agreement between thoughts, calls and answer, and signs of doubt. It does not judge whether the answer or the
steps were right.

Scale: 0..1, 1 means that the agent was confident in every step.
Source: PandaProbe, trace metrics, *Confidence*.
"""

from __future__ import annotations

from pandaeval_collector.judge.rubric import Answer, Reason
from pandaeval_collector.scoring.metrics.trace._facts import Part, judged_trace_metric


class Confidence(Answer):
    reason: Reason
    """The signs for and against confidence."""
    confidence: Part


METRIC = judged_trace_metric(
    "confidence",
    about=__doc__,
    version="7",
    question="How confident was the agent?",
    needs="an answer or tool calls; a judge",
    text="""
How confident was the agent's manner? Judge how it acted and spoke, not whether it was right and not whether its steps
were the best.

- Decisiveness: does it proceed, or does it waver, ask back without need, or undo its last step?
- Appropriateness: is it firm if it knows enough, and does it check or ask if it has to?
- Consistency: do its thoughts, calls and answer agree?
- Signs of doubt: hedges, guesses, apologies, repeated calls without a reason, a vague answer.

A check before an irreversible action, a question for needed information, and a plain "I cannot know that" are decisive.
Rate a run of one message, or a refusal, by its words: plain 1.0, hedged or evasive 0.25.

Example: the agent looks the booking up, cancels it and answers "It is cancelled": 1.0. It looks the booking up three
times and answers "it should be cancelled, I think": 0.25.

Guide:
1.0   sure throughout
0.75  a small doubt
0.5   it wavers or contradicts itself at an important point
0.25  unsure for most of the run
0.0   it only guesses, or gives up without trying
""",
    answer=Confidence,
    decides="confidence",
)

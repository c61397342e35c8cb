"""How confident was the agent?

A judge reads the whole run and rates how confident the agent was. Was the agent decisive, did it act by the known
facts, do thoughts, calls and answer agree, and are there signs of doubt? It does not judge whether the answer or the
steps were right: a confident agent can be wrong.

Scale: 0..1, 1 is confident throughout.
Source: PandaProbe, trace metrics, *Confidence*.
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.judge.rubric import Answer, Reason
from pandaeval_collector.scoring.metrics.trace._facts import Part, of_trace


class Confidence(Answer):
    """``confidence``: 0..1, 1 is confident throughout; ``None``: it cannot be told."""

    reason: Reason = Field(description="What speaks for and against confidence.")
    confidence: Part


METRIC = of_trace(
    "confidence",
    about=__doc__,
    version="6",
    question="How confident was the agent?",
    needs="an answer or tool calls; a judge",
    text="""
How confident was the agent's manner? Judge how it acted and spoke, and neither whether it is right nor whether its
steps were the best ones.

- Decisiveness: does it go on, or does it waver, ask back without need, or undo what it just did?
- Appropriateness: is it firm where it knows enough, and does it check or ask where it has to?
- Consistency: do its thoughts, its calls and its answer say the same?
- Signs of doubt: hedges, guesses, apologies, the same call again or another way without a reason, a vague answer.

To check before something that cannot be undone, to ask for what is needed, or to say what cannot be known or done is
decisive. A run of one message, or a refusal, counts by its words: plain 1.0, hedged or evasive 0.25.

Example: it looks the booking up, cancels it and says "It is cancelled": 1.0. It looks the booking up three times and
says "it should be cancelled, I think": 0.25.

Guide:
1.0   sure throughout
0.75  a small doubt
0.5   it wavers or contradicts itself at a place that matters
0.25  unsure for most of the run
0.0   it only guesses, or gives up without having tried
""",
    answer=Confidence,
    decides="confidence",
)

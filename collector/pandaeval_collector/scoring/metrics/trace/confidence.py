"""How sure of itself was the agent?

A judge reads the whole run and rates the manner in which the agent acted and spoke: was it decisive, did it fit what
was known, do thoughts, calls and answer agree with each other, and are there signs of doubt? It does not judge whether
the answer is right nor whether the steps were good ones: an agent can be surely wrong, and the metrics of task and
tools are there for that.

Scale: 0..1, 1 is sure throughout.
Source: PandaProbe, trace metrics, *Confidence*.
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Answer, QuestionPart, Reason
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.metrics.trace._facts import ABOUT, BY_THE_GUIDE, Part, shows_nothing, undetermined
from pandaeval_otel.model import Trace


class Confidence(Answer):
    """``confidence``: 0..1, 1 is sure throughout; ``None``: it cannot be told."""

    reason: Reason = Field(description="What in the run speaks for and against confidence, in one to three sentences.")
    confidence: Part = Field(description=BY_THE_GUIDE)


PART = QuestionPart(
    name="confidence",
    version="6",
    level="trace",
    about=ABOUT,
    text="""
How confident was the agent's manner? Judge how it acted and spoke, and neither whether it is right nor whether its
steps were the best ones.

- Decisiveness: does it go for a next step, or does it waver, ask back without need, or undo what it just did?
- Appropriateness: does it act firmly where it knows enough, and check or ask where it has to?
- Consistency: do its thoughts, its calls and its answer say the same?
- Signs of low confidence: hedges, guesses, apologies, the same call again without a reason, a way that is given up
  though no result gave cause, an answer that is vague or left open.

To check before something that cannot be undone, to ask for what is needed, or to say that something cannot be known
is decisive. Who gives up because a result shows that it cannot be done, and says so, is sure.

A run of one message is judged by its words: stated plainly 1.0, hedged throughout 0.25. So is a refusal: plain, with
its reason, 1.0; evasive 0.25.

Example of 1.0: it looks the booking up, cancels it, says "It is cancelled." Example of 0.25: it looks the booking up
three times and says "it should be cancelled, I think, or maybe not".

Guide:
1.0   sure throughout: nothing wavers; thoughts, calls and answer agree
0.75  sure on the whole, with a small doubt
0.5   it wavers or contradicts itself at a place that matters
0.25  unsure for most of the run, or several ways begun and given up
0.0   no confidence at all: it guesses, contradicts itself, or gives up without having tried
""",
    answer=Confidence,
)


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    found, _ = await judge.answer(PART, trace)
    return undetermined(found.reason) if found.confidence is None else Score(found.confidence, found.reason)


METRIC = Metric(
    level="trace",
    name="confidence",
    kind="llm",
    version="6",
    threshold=0.5,
    question="How sure of itself was the agent?",
    needs="an answer or tool calls; a judge",
    evaluate=shows_nothing,
    about=__doc__,
    ask=_ask,
    part=PART,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

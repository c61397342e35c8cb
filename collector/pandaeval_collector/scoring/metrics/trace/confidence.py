"""How sure of itself was the agent?

A judge reads the whole run and rates the confidence that the agent showed: was it decisive, were its steps fit for what
it was asked, do thoughts, calls and answer agree with each other, and are there signs of doubt? It does not judge
whether the answer is right: an agent can be surely wrong, and the metrics of task and tools are there for that.

Scale: 0..1, 1 is sure throughout.
Source: PandaProbe, trace metrics, *Confidence*.
"""

from __future__ import annotations

from pydantic import Field

from pandaeval_collector.base.score import Finding, Score, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.metrics.trace._facts import BY_THE_GUIDE, Part, shows_nothing, undetermined
from pandaeval_otel.model import Trace


class Confidence(Verdict):
    """``confidence``: 0..1, 1 is sure throughout; ``None``: it cannot be told."""

    reason: Reason = Field(description="What in the run speaks for and against confidence, in one to three sentences.")
    confidence: Part = Field(description=BY_THE_GUIDE)


RUBRIC = Rubric(
    name="confidence",
    version="5",
    text="""
How confident did the agent act throughout this run?

- Decisiveness: does it go for a next step, or does it waver, ask back without need, or undo what it just did?
- Appropriateness: do the steps fit what the user asked and what the tools had answered so far?
- Consistency: does it keep to one way, and do its thoughts, its calls and its answer say the same?
- Signs of low confidence: hedges, guesses, apologies, the same call again without a reason, a way that is given up
  though no result gave cause, an answer that is vague, put off or left open.

Caution in the right place is no lack of confidence: to check before something that cannot be undone, to ask for what is
needed, or to say plainly that something cannot be known, is decisive. Giving up after evidence is not doubt: who tried,
saw in a result that it cannot be done and says so, is sure. Judge how sure the agent acted, not whether its answer is
right.

Example: it finds the booking, looks for it again without a reason, and says "it should be cancelled, I think": 0.5.

Guide:
1.0   sure throughout: every step is fit, nothing wavers, thoughts, calls and answer agree
0.75  sure on the whole, with a small doubt or a way that was not the best
0.5   it wavers or contradicts itself at a place that matters
0.25  unsure for most of the run, or several ways begun and given up
0.0   no confidence at all: it guesses, contradicts itself, or gives up without having tried
""",
    verdict=Confidence,
)


async def _ask(trace: Trace, judge: Judge) -> Finding | None:
    verdict = await judge.ask(RUBRIC)
    return undetermined(verdict.reason) if verdict.confidence is None else Score(verdict.confidence, verdict.reason)


METRIC = Metric(
    level="trace",
    name="confidence",
    kind="llm",
    version="5",
    threshold=0.5,
    question="How sure of itself was the agent?",
    needs="an answer or tool calls; a judge",
    evaluate=shows_nothing,
    about=__doc__,
    ask=_ask,
    rubrics=(RUBRIC,),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

"""Did the user get what the user was after, by the end of the conversation?

Strictly yes or no: a goal that was talked about, reached in part or refused, however rightly, is not completed. The
goal is the one that the application states (``pandaeval.goal``), else what the user wants by his own words. The judge
answers it in the call of ``correctness``. It does not judge whether the agent did right: that is the question there. Of
a conversation of more than 24 traces, the first and the newest are shown.

Scale: 0 or 1; the gate is the share of conversations.
Source: Agentest, evaluation metrics, *Goal Completion*.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.turns import Conversation
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.metrics.session.correctness import WHOLE, ask_whole, before_asking, not_shown
from pandaeval_collector.scoring.metrics.trace._facts import undetermined


async def _ask(conversation: Conversation, judge: Judge) -> Finding | None:
    found = await ask_whole(conversation, judge)
    if isinstance(found, Unscored):
        return found
    if found.goal_completed is None:
        return undetermined(found.reason)
    goal = conversation.goal or "; ".join(each.thing for each in found.things)
    metadata = {"goal": goal, "turns": len(conversation.trace.turns), **not_shown(conversation)}
    return Score(float(found.goal_completed), found.reason, metadata)


METRIC = Metric(
    level="session",
    name="goal_completion",
    kind="llm",
    version="3",
    threshold=0.5,
    question="Did the user get what the user was after, by the end of the conversation?",
    needs="session id; what was said; a judge",
    about=str(__doc__).strip(),
    evaluate=before_asking,
    ask=_ask,
    rubrics=(WHOLE,),
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

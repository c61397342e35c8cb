"""How hard did the agent make it for the user?

None, some or much, by the user's own messages: the user repeats itself, corrects the agent, complains, asks for a
person or gives up. The judge answers it in the call of ``correctness``. It does not judge whether the agent did right:
a right refusal may annoy.

Scale: 1 none, 0.5 some, 0 much.
Source: ours.
"""

from __future__ import annotations

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.turns import Conversation
from pandaeval_collector.scoring.metric import Metric
from pandaeval_collector.scoring.metrics.session.correctness import WHOLE, ask_whole, before_asking, not_shown

SCORES = {"none": 1.0, "some": 0.5, "much": 0.0}


async def _ask(conversation: Conversation, judge: Judge) -> Finding | None:
    found = await ask_whole(conversation, judge)
    if isinstance(found, Unscored):
        return found
    signs = [each.model_dump() for each in found.friction_signs]
    reason = ", ".join(f"turn {each.turn}: {each.sign}" for each in found.friction_signs)
    metadata = {"friction": found.friction, "signs": signs, **not_shown(conversation)}
    return Score(SCORES[found.friction], reason or "no message of the user shows any", metadata)


METRIC = Metric(
    level="session",
    name="user_friction",
    kind="llm",
    version="1",
    threshold=0.5,
    question="How hard did the agent make it for the user?",
    needs="session id; what was said; a judge",
    about=str(__doc__).strip(),
    evaluate=before_asking,
    ask=_ask,
    rubrics=(WHOLE,),
    settings={"scores": SCORES},
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

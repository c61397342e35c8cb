"""What the questions about one turn share: their introduction, what is given with them, and how an answer is had."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel

from pandaeval_collector.base.score import Finding, Unscored, Why
from pandaeval_collector.judge.desk import Judge, NoVerdictError
from pandaeval_collector.judge.parts import QuestionPart, rubric_of
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metric import TurnContext
from pandaeval_collector.scoring.metrics.trace._facts import NOTHING_TOLD, says_something, told
from pandaeval_collector.scoring.metrics.trace._task import task_of

P = TypeVar("P", bound=BaseModel)

ABOUT = """
Judge one turn of a conversation: the user's last words, what the agent did then, and what it answered. All that was
said before is context: it is known, and not judged again. Goal and profile of the user and what is known for certain
are given below as far as anybody stated them; a goal that nobody stated is what the user wants in this conversation by
his own words. Answer each question by itself: an answer can be right and too long, or short and wrong.
"""


async def asked(part: QuestionPart[P], view: TurnView, judge: Judge) -> P:
    """The judge's answer to one question about the turn: out of the call that it shares with the others, or, where
    their verdict does not hold, out of one of its own. Raises as :meth:`Judge.ask`."""
    given = await given_of(view, judge)
    if part in judge.together and len(judge.together) > 1:
        try:
            shared = await judge.ask(rubric_of(judge.together), given)
        except NoVerdictError as error:
            if error.why is not Why.INVALID_VERDICT:
                raise
        else:
            return _own(part, shared)
    return _own(part, await judge.ask(rubric_of((part,)), given))


def _own(part: QuestionPart[P], verdict: Any) -> P:
    found = getattr(verdict, part.name)
    assert isinstance(found, part.answer)
    return found


async def given_of(view: TurnView, judge: Judge) -> dict[str, Any]:
    """What goes with every question about a turn. The goal is the stated one, else the task of this turn."""
    given: dict[str, Any] = {"goal": view.goal or await _task(view, judge), "profile": view.profile}
    given["knowledge"] = "\n".join(f"- {each}" for each in view.knowledge)
    return {**{name: text for name, text in given.items() if text}, "calls": len(view.tool_calls)}


async def _task(view: TurnView, judge: Judge) -> str:
    try:
        return await task_of(view.trace, judge)
    except NoVerdictError:
        return ""


def answers(view: TurnView) -> bool:
    """Whether the answer of this turn can be judged: a run that failed or ended in a call of a tool has none."""
    return view.agent_message is not None or not (view.trace.error is not None or view.trace.ends_in_tool_call)


def unsaid(view: TurnView, context: TurnContext) -> Finding | None:
    """Why the answer of a turn cannot be judged; ``None`` where a judge can be asked."""
    if not told(view.trace):
        return NOTHING_TOLD
    turn = view.trace.turns[0]
    if not says_something(turn.user) and not turn.media_only:
        return Unscored(Why.NO_CONTENT, "what the user said was not captured, or says nothing")
    if not says_something(turn.assistant):
        return Unscored(Why.NO_CONTENT, "the answer was not captured, or says nothing")
    return None

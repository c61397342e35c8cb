"""What the spans say by themselves about a run, as judged metrics need it, and what the agent was to do: only
that is asked of a model, where no message tells it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.printable import UNSEEN, as_text
from pandaeval_collector.base.untrusted.silence import says_something as has_content
from pandaeval_collector.judge.client import Judge, NoVerdictError
from pandaeval_collector.judge.pack import Pack
from pandaeval_collector.judge.redact import redact, redact_value
from pandaeval_collector.judge.rubric import Answer, Extraction, Facts, QuestionPart, Reason
from pandaeval_collector.judge.sanitize import one_line
from pandaeval_collector.judge.schemas import STEP
from pandaeval_collector.judge.shorten import elided
from pandaeval_collector.scoring.metric import JudgedTraceMetric, JudgedTurnMetric, TraceContext
from pandaeval_otel.model import ToolCall, Trace

M = TypeVar("M", JudgedTraceMetric, JudgedTurnMetric)
# What the agent was to do: the user's own words where one message tells it, else asked of a judge once per trace.
_LONGEST = 800
"""Characters of a task. A longer message holds more than the task: a document, a log, an example."""
_FEWEST_WORDS = 4
"""A shorter message ("yes, do that") speaks of what stands elsewhere."""
_SELF_CONTAINED = 60
"""A message of fewer words is shown with the agent's words that it answers, if there are any."""
_REFERENT = 600
"""Characters shown of those words."""
# What the questions about one trace share: their introduction, and the task.
ABOUT = """
Judge one run of an agent. The task is given below as "task". If it is missing, use the user's messages.
Answer each question separately: right tools can be used badly, and a detour can reach the goal. Reasons have one to
three sentences. Numbers and levels follow the guide of their question. They are null if the record is not sufficient
to decide.
"""
# What verdicts of all judged metrics share: a number that may be unknown, and what becomes of one that is.
Part = Annotated[float, Field(ge=0.0, le=1.0)] | None
"""0..1, or null: the record does not suffice to tell."""
_MAX_TEXT = 2000
"""Characters of a text that a result's metadata hold."""
_MAX_VALUE = 1000
_MAX_LISTED = 100
_OPENING = 80
"""An opening is shorter than this."""
_OPENINGS = frozenset(
    {
        *("thought process", "thinking", "thoughts", "solution", "answer", "the answer", "final answer", "response"),
        *("the final answer is", "the answer is", "assistant", "output", "result", "analysis", "explanation"),
        *("let s solve this problem step by step", "let us solve this problem step by step"),
        *("let s solve this step by step", "let us solve this step by step", "let s think step by step"),
        *("let me think step by step", "step by step", "lösung", "antwort", "réponse", "respuesta", "solución"),
        *("解", "解答", "答え", "かいせつ", "답변", "ответ", "решение"),
    }
)
"""Openings that were published as enough to move a judge, and their like, without case and punctuation."""
NOTHING_TOLD = Unscored(Why.NO_CONTENT, "no content of the user, the agent or a tool was captured")


class Task(Answer):
    """``task``: empty when the record does not tell."""

    task: Annotated[str, Field(max_length=_LONGEST)] = Field(
        description="The user's requests in one or two sentences, with every condition: numbers, dates, places, "
        "limits, form of the answer. If a later request withdraws an earlier one, only the later one. If no words of "
        "the user were captured, the plain purpose of the steps. Empty if nothing shows it."
    )


def _told(trace: Trace, pack: Pack) -> dict[str, str] | None:
    """Returns the task, without secrets, where a single message of the user states it."""
    said = (trace.turns[0].user or "").strip() if len(trace.turns) == 1 else ""
    if 0 < len(said) <= _LONGEST:
        words, last_said = len(said.split()), pack.last_said
        if last_said and words < _SELF_CONTAINED:
            answers = elided(one_line(redact(last_said)), _REFERENT)
            return {"task": f"{redact(said)} (in answer to the agent: {answers})"}
        if words >= _FEWEST_WORDS:
            return {"task": redact(said)}
    return None


def _of_answer(found: Task, trace: Trace) -> dict[str, str]:
    if not found.task.strip():
        raise NoVerdictError(Why.NO_CONTENT, "the record does not show the task of the agent")
    return {"task": found.task}


TASK = Extraction(
    name="task",
    version="6",
    level="trace",
    about=ABOUT,
    # The field's description asks for it: small models copy a question that names a field into that field.
    text="What did the user want? Take it from the record. Do not judge anything.",
    answer=Task,
    facts=_of_answer,
    known=_told,
)
USER_INPUT = replace(TASK, known=lambda trace, pack: {} if user_input(trace) is not None else _told(trace, pack))
"""The same for questions that the user's words suffice for, which the record shows: asked only where there are none."""


def numbers(trace: Trace) -> dict[str, int]:
    """Returns how many calls and turns there are, so that a reply can be held against them."""
    return {"calls": len(trace.tool_calls), "turns": max(1, len(trace.turns))}


def _named(step: Any) -> Any:
    """Takes a bare number for that of a call."""
    text = str(step).strip().lower() if isinstance(step, int | str) and not isinstance(step, bool) else step
    return f"call {text}" if isinstance(text, str) and text.isdigit() else text


Step = Annotated[str, Field(pattern=STEP), BeforeValidator(_named)]
"""``call 7``, or ``turn 2`` for the agent's answer in it."""


def no_such(steps: Iterable[str | None], given: Mapping[str, Any]) -> str | None:
    """Returns what is wrong with named steps: one that does not exist, by the :func:`numbers` that were given."""
    for step in filter(None, steps):
        kind, _, number = step.partition(" ")
        if not 1 <= int(number) <= given[f"{kind}s"]:
            return f"there is no {step}"
    return None


def undetermined(reason: str) -> Unscored:
    """Makes the finding for a verdict that nothing can be said."""
    return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {reason}")


def user_input(trace: Trace) -> str | None:
    """Returns what the user said in all turns, without secrets, about 2000 characters; ``None``: not captured."""
    text = _asked(trace)
    return elided(redact(text), _MAX_TEXT) if text else None


def _asked(trace: Trace) -> str:
    said = [turn.user for turn in trace.turns if turn.user and turn.user.strip()]
    return "\n\n".join(said) or (trace.input or "").strip()


def answered(trace: Trace) -> bool:
    """Returns whether there is an answer that says anything: an empty one, or a punctuation mark, does not."""
    return any(says_something(text) for text in (trace.output, *(turn.assistant for turn in trace.turns)))


def why_not_captured(trace: Trace) -> str:
    """Returns, for people, why content that is needed may be missing."""
    lost = (note for note in trace.notes if "cut short" in note or "were dropped" in note)
    return next(lost, "is content capture switched on?")


def says_something(text: str | None) -> bool:
    """Returns whether a text says anything: not an empty one, one of punctuation alone (letters, digits and pictographs
    count), a control token or the bare opening of an answer that never comes. Such texts make some judges answer "all
    is well"."""
    seen = UNSEEN.sub("", text or "")
    if len(seen) > _OPENING:
        return has_content(seen)
    bare = " ".join("".join(sign if sign.isalnum() else " " for sign in seen.casefold()).split())
    return has_content(seen) and bare not in _OPENINGS


def crashed(trace: Trace) -> bool:
    """Returns whether the run ended with an error, and its last answer says nothing."""
    last = trace.turns[-1].assistant if trace.turns else None
    return trace.error is not None and not says_something(trace.output) and not says_something(last)


def told(trace: Trace) -> bool:
    """Returns whether any words of the user, the agent or a tool were captured. Names of tools, which are recorded even
    without content, tell neither what was wanted nor what came of it."""
    if _asked(trace) or answered(trace) or any(says_something(text) for text in trace.reasoning):
        return True
    return any(call.error or call.result or (call.has_arguments and call.arguments) for call in trace.tool_calls)


def shows_nothing(trace: Trace, context: TraceContext) -> Unscored | None:
    """Returns the finding for a run without a captured answer or step; ``None`` if a judge can read the run."""
    if not told(trace):
        return NOTHING_TOLD
    if answered(trace) or trace.tool_calls or any(says_something(text) for text in trace.reasoning):
        return None
    return Unscored(Why.NO_CONTENT, "no answer with content and no step of the agent was captured")


def tools_called(trace: Trace) -> list[dict[str, Any]]:
    """Returns ``{name, parameters}`` of the calls in order, without secrets; of more than 100 the first and last 50."""
    calls, half = trace.tool_calls, _MAX_LISTED // 2
    shown = calls if len(calls) <= _MAX_LISTED else (*calls[:half], *calls[-half:])
    return [{"name": call.name, "parameters": parameters(call)} for call in shown]


def available_tools(trace: Trace) -> list[dict[str, str]]:
    """Returns ``{name, description}`` of the first 100 tools that the agent had, without secrets."""
    return [
        {"name": tool.name, "description": elided(redact(tool.description), _MAX_VALUE)}
        for tool in trace.tools[:_MAX_LISTED]
    ]


def parameters(call: ToolCall) -> Any:
    """Returns a call's arguments without secrets; shortened to a text when long, ``None`` when not captured."""
    if not call.has_arguments:
        return None
    value = redact_value(call.arguments)
    text = as_text(value)
    return value if isinstance(value, Mapping) and len(text) <= _MAX_VALUE else elided(text, _MAX_VALUE)


# A judged metric of level trace: its question, and what becomes of the answer.
class ConcludedError(Exception):
    """What was extracted settles the question; ``finding``: how."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


def of_trace(
    name: str,
    about: str | None,
    version: str,
    question: str,
    needs: str,
    text: str,
    answer: type[BaseModel],
    decides: str = "level",
    score: Callable[[Any, Any, Trace, Facts], Score | Unscored] = lambda value, found, *_: Score(value, found.reason),
    levels: Mapping[str, float] | None = None,
    evaluate: Callable[[Trace, TraceContext], Finding | None] = shows_nothing,
    extractions: tuple[Extraction[Any], ...] = (),
    **more: Any,
) -> JudgedTraceMetric:
    """Makes a metric that has a judge answer the question in ``text``. ``decides``: the field of the answer with its
    value, which is unknown if that is ``None``; ``levels``: the number of each value, if it is a word; ``score``:
    scores the value by the answer and the facts that the ``extractions`` found. ``more``: of
    :class:`pandaeval_collector.judge.rubric.QuestionPart`."""
    part = QuestionPart(
        name=name, version=version, level="trace", about=ABOUT, text=text, answer=answer, needs=extractions, **more
    )

    async def ask(trace: Trace, judge: Judge) -> Finding | None:
        try:
            found: Any
            found, facts = await judge.answer(part, trace)
        except ConcludedError as concluded:
            return concluded.finding
        value = getattr(found, decides)
        if value is None:
            return undetermined(found.reason)
        return score(levels[value] if levels else value, found, trace, facts)

    settings = {"levels": levels} if levels else {}
    return asking(JudgedTraceMetric, part, ask, question, about, needs, evaluate, settings=settings)


def asking(
    made: type[M],
    part: QuestionPart[Any],
    ask: Callable[[Any, Judge], Awaitable[Finding | None]],
    question: str,
    about: str | None,
    needs: str,
    evaluate: Callable[[Any, Any], Finding | None],
    **more: Any,
) -> M:
    """Makes a metric of the class ``made`` of a question of its own. ``more``: further fields of the class."""
    return made(
        name=part.name,
        version=part.version,
        question=question,
        about=about or "",
        needs=needs,
        evaluate=evaluate,
        ask=ask,
        part=part,
        unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
        **{"threshold": 0.5, **more},
    )


def levelled(name: str, reason: str, levels: Iterable[str], note: str | None = None) -> type[Answer]:
    """Makes the shape of an answer with a ``reason``, as described, and ``level``: one of the ``levels`` or, where it
    cannot be told, ``None``. ``note``: the description of the level."""
    level: Any = Literal[tuple(levels)] | None
    fields: dict[str, Any] = {
        "reason": (Reason, Field(description=reason)),
        "level": (level, Field(description=note)),
    }
    return create_model(name, __base__=Answer, **fields)

"""Facts for judged metrics, from the spans. A judge extracts the task if no single message states it."""

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
# The agent's task: the user's words if a single message states it. Otherwise a judge extracts it once per trace.
_LONGEST = 800
"""Maximum characters of a task. A longer message contains more than the task, such as a document or a log."""
_FEWEST_WORDS = 4
"""A message with fewer words ("yes, do that") refers to other messages."""
_SELF_CONTAINED = 60
"""A message with fewer words is shown with the agent's message before it."""
_REFERENT = 600
"""Maximum characters of the agent's message before it."""
# Introduction and task, which all questions about a trace share.
ABOUT = """
Judge one run of an agent. The task is given below as "task". If it is missing, use the user's messages.
Answer each question separately: right tools can be used badly, and a detour can reach the goal. Reasons have one to
three sentences. Numbers and levels follow the guide of their question. They are null if the record is not sufficient
to decide.
"""
# Common parts of all verdicts: a number that can be unknown, and the handling of an unknown number.
Part = Annotated[float, Field(ge=0.0, le=1.0)] | None
"""0..1, or null if the record is not sufficient."""
_MAX_TEXT = 2000
"""Maximum characters of a text in metadata."""
_MAX_VALUE = 1000
_MAX_LISTED = 100
_OPENING = 80
"""Maximum characters of an opening."""
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
"""Openings that can deceive a judge, as published, and similar openings; without case and punctuation."""
NOTHING_CAPTURED = Unscored(Why.NO_CONTENT, "no content of the user, the agent or a tool was captured")


class Task(Answer):
    task: Annotated[str, Field(max_length=_LONGEST)]
    """The user's requests in one or two sentences, with every condition: numbers, dates, places, limits, form of the
    answer. If a later request withdraws an earlier one, only the later one. If no words of the user were captured, the
    plain purpose of the steps. Empty if nothing shows it."""


def _told(trace: Trace, pack: Pack) -> dict[str, str] | None:
    user_message = (trace.turns[0].user or "").strip() if len(trace.turns) == 1 else ""
    if 0 < len(user_message) <= _LONGEST:
        words, last_said = len(user_message.split()), pack.last_said
        if last_said and words < _SELF_CONTAINED:
            answers = elided(one_line(redact(last_said)), _REFERENT)
            return {"task": f"{redact(user_message)} (in answer to the agent: {answers})"}
        if words >= _FEWEST_WORDS:
            return {"task": redact(user_message)}
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
    # Only the field's description names the field, because small models copy a question into a field that it names.
    text="What did the user want? Take it from the record. Do not judge anything.",
    answer=Task,
    facts=_of_answer,
    known=_told,
)
USER_INPUT = replace(TASK, known=lambda trace, pack: {} if user_input(trace) is not None else _told(trace, pack))
"""The same for questions that need only the user's words. The judge extracts a task only if there are no words."""


def step_counts(trace: Trace) -> dict[str, int]:
    return {"calls": len(trace.tool_calls), "turns": max(1, len(trace.turns))}


def _named(step: Any) -> Any:
    text = str(step).strip().lower() if isinstance(step, int | str) and not isinstance(step, bool) else step
    return f"call {text}" if isinstance(text, str) and text.isdigit() else text


Step = Annotated[str, Field(pattern=STEP), BeforeValidator(_named)]
"""``call 7``, or ``turn 2`` for the agent's answer in it."""


def missing_step_error(steps: Iterable[str | None], given: Mapping[str, Any]) -> str | None:
    """Return the error for steps that do not exist, by the :func:`step_counts`."""
    for step in filter(None, steps):
        kind, _, number = step.partition(" ")
        if not 1 <= int(number) <= given[f"{kind}s"]:
            return f"there is no {step}"
    return None


def undetermined(reason: str) -> Unscored:
    return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {reason}")


def user_input(trace: Trace) -> str | None:
    """Return the user's redacted words of all turns, at most about 2000 characters; ``None`` if not captured."""
    text = _asked(trace)
    return elided(redact(text), _MAX_TEXT) if text else None


def _asked(trace: Trace) -> str:
    user_messages = [turn.user for turn in trace.turns if turn.user and turn.user.strip()]
    return "\n\n".join(user_messages) or (trace.input or "").strip()


def has_answer(trace: Trace) -> bool:
    return any(has_meaningful_text(text) for text in (trace.output, *(turn.assistant for turn in trace.turns)))


def why_not_captured(trace: Trace) -> str:
    lost = (note for note in trace.notes if "cut short" in note or "were dropped" in note)
    return next(lost, "is content capture switched on?")


def has_meaningful_text(text: str | None) -> bool:
    """Return whether a text has letters, digits or pictographs, and is not only a control token or an opening."""
    seen = UNSEEN.sub("", text or "")
    if len(seen) > _OPENING:
        return has_content(seen)
    bare = " ".join("".join(sign if sign.isalnum() else " " for sign in seen.casefold()).split())
    return has_content(seen) and bare not in _OPENINGS


def crashed(trace: Trace) -> bool:
    """Return whether the run ended with an error and without an answer."""
    last = trace.turns[-1].assistant if trace.turns else None
    return trace.error is not None and not has_meaningful_text(trace.output) and not has_meaningful_text(last)


def has_any_content(trace: Trace) -> bool:
    """Return whether any words of user, agent or tool were captured."""
    if _asked(trace) or has_answer(trace) or any(has_meaningful_text(text) for text in trace.reasoning):
        return True
    return any(call.error or call.result or (call.has_arguments and call.arguments) for call in trace.tool_calls)


def shows_nothing(trace: Trace, context: TraceContext) -> Unscored | None:
    """Return the finding for a run without a captured answer or step, else ``None``."""
    if not has_any_content(trace):
        return NOTHING_CAPTURED
    if has_answer(trace) or trace.tool_calls or any(has_meaningful_text(text) for text in trace.reasoning):
        return None
    return Unscored(Why.NO_CONTENT, "no answer with content and no step of the agent was captured")


def tools_called(trace: Trace) -> list[dict[str, Any]]:
    """Return the redacted ``{name, parameters}`` of the calls in order; of more than 100, the first and last 50."""
    calls, half = trace.tool_calls, _MAX_LISTED // 2
    shown = calls if len(calls) <= _MAX_LISTED else (*calls[:half], *calls[-half:])
    return [{"name": call.name, "parameters": parameters(call)} for call in shown]


def available_tools(trace: Trace) -> list[dict[str, str]]:
    return [
        {"name": tool.name, "description": elided(redact(tool.description), _MAX_VALUE)}
        for tool in trace.tools[:_MAX_LISTED]
    ]


def parameters(call: ToolCall) -> Any:
    """Return a call's redacted arguments, shortened to text if long; ``None`` if not captured."""
    if not call.has_arguments:
        return None
    value = redact_value(call.arguments)
    text = as_text(value)
    return value if isinstance(value, Mapping) and len(text) <= _MAX_VALUE else elided(text, _MAX_VALUE)


# Makes a judged trace metric from its question and the handling of the answer.
class ConcludedError(Exception):
    """The extracted facts settle the question with ``finding``."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


def judged_trace_metric(
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
    extractions: tuple[Extraction, ...] = (),
    **more: Any,
) -> JudgedTraceMetric:
    """Make a metric whose question a judge answers.

    ``decides``: field with the value; ``None`` is unknown. ``levels``: number of each word value. ``score``: takes the
    answer and the extracted facts. ``more``: fields of :class:`pandaeval_collector.judge.rubric.QuestionPart`.
    """
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
    return judged_metric(JudgedTraceMetric, part, ask, question, about, needs, evaluate, settings=settings)


def judged_metric(
    made: type[M],
    part: QuestionPart,
    ask: Callable[[Any, Judge], Awaitable[Finding | None]],
    question: str,
    about: str | None,
    needs: str,
    evaluate: Callable[[Any, Any], Finding | None],
    **more: Any,
) -> M:
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


def level_answer(name: str, reason: str, levels: Iterable[str], note: str | None = None) -> type[Answer]:
    """Make an answer shape with ``reason`` and ``level`` (``None`` if undetermined)."""
    level: Any = Literal[tuple(levels)] | None
    fields: dict[str, Any] = {
        "reason": (Reason, Field(description=reason)),
        "level": (level, Field(description=note)),
    }
    return create_model(name, __base__=Answer, **fields)

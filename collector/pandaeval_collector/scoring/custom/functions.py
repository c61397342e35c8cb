"""Makes metrics from functions, classes and definitions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, create_model

from pandaeval_collector.base.runtime.modules import source_digest
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.judge.client import Judge
from pandaeval_collector.judge.conversation import Conversation
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.judge.turns import TurnView, stated
from pandaeval_collector.scoring.custom.definition import UNIT, UNKNOWN, Definition, LabelDefinition, scaled, written
from pandaeval_collector.scoring.metric import Metric
from pandaeval_otel.model import Trace

Made = Callable[[Any], Metric]
_WANTED = "a number, True or False, a label, a pair of one of these and a reason, a Score, an Unscored or None"
_ABOUT = {
    "turn": "Judge one turn of a conversation: the user's last words, what the agent did then, and what it answered. "
    "All that was said before is context, and not judged again.",
    "session": "Judge a whole conversation, from its first words to its last.",
}


def judged(**definition: Any) -> Metric:
    """Make a judged metric from the keys of a :class:`Definition`.

    >>> judged(name="tone", criteria="The answer is calm and polite.", scale=[1, 5], threshold=3.5).kind
    'llm'

    Raises ``ValueError`` for invalid keys.
    """
    return build(Definition.model_validate(definition))


def build(definition: Definition) -> Metric:
    """Make the metric of a definition. Raises ``ValueError`` if it cannot run."""
    rubric: Rubric = Rubric(
        name=definition.name if definition.level == "trace" else f"{definition.level}_{definition.name}",
        version=definition.digest,  # never the user's version, which can stay the same: verdicts are cached by it
        text="\n\n".join(_text(definition)),
        verdict=_verdict(definition),
    )

    least, most = definition.range
    scale = f"Scale: {least:g}-{most:g}, {most:g} is best."
    if definition.labels is not None:
        scores = (
            f"{name} {label.score:g}" + (f" ({label.severity})" if label.severity else "")
            for name, label in definition.labels.items()
        )
        scale = f"Scores: {', '.join(scores)}."

    async def ask(subject: Any, judge: Judge) -> Finding | None:
        verdict: Any = await judge.ask(rubric, stated(subject) if isinstance(subject, TurnView | Conversation) else {})
        value = verdict.score if definition.labels is None else verdict.label
        if value is None or value == UNKNOWN:
            return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not decide: {verdict.reason}")
        if definition.labels is None:
            return scaled(value, definition.range, verdict.reason)
        return labelled(value, definition.labels, verdict.reason)

    return Metric(
        level=definition.level,
        name=definition.name,
        kind="llm",
        version=definition.version or definition.digest,
        threshold=definition.least_passing,
        question=definition.asks,
        needs=definition.needs,
        evaluate=_before_asking,
        ask=ask,
        rubrics=(rubric,),
        unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
        scale=written(definition.range),
        model=definition.model,
        about="\n\n".join([*_text(definition), scale]),
    )


def _before_asking(subject: Any, context: object) -> Finding | None:
    trace = subject if isinstance(subject, Trace) else getattr(subject, "trace", None)
    if not isinstance(trace, Trace):
        return None
    agent_texts = (trace.output, *(turn.assistant for turn in trace.turns), *trace.reasoning)
    if trace.tool_calls or any(text and says_something(text) for text in agent_texts):
        return None
    return Unscored(Why.NO_CONTENT, "no answer with content and no step of the agent was captured")


def _text(definition: Definition) -> Iterator[str]:
    if definition.level in _ABOUT:
        yield _ABOUT[definition.level]
    yield definition.asks
    yield definition.criteria.strip()
    if definition.labels is not None:
        meanings = ((name, label.meaning.strip()) for name, label in definition.labels.items())
        yield "\n".join(["Choices:", *(f'- "{name}"' + (f": {text}" if text else "") for name, text in meanings)])
        return
    least, most = definition.range
    yield f"Answer with a number from {least:g} (worst) to {most:g} (best)."


def _verdict(definition: Definition) -> type[Verdict]:
    reason: Any = (Reason, Field(description="What in the record bears out the answer, in one to three sentences."))
    if definition.labels is not None:
        choices: Any = Literal[(*definition.labels, UNKNOWN)]
        about = f'One of the choices; "{UNKNOWN}" if the record is not sufficient to decide.'
        return create_model(definition.name, __base__=Verdict, reason=reason, label=(choices, Field(description=about)))
    least, most = definition.range
    about = "By the criteria. Null if the record is not sufficient to decide."
    number: Any = (float | None, Field(ge=least, le=most, description=about))
    return create_model(definition.name, __base__=Verdict, reason=reason, score=number)


def labelled(name: str, labels: Mapping[str, LabelDefinition], reason: str) -> Score:
    """Score a label. A label with a severity fails."""
    label = labels[name]
    if label.severity is None:
        return Score(label.score, reason, label=name)
    return Score(label.score, reason, {"severity": label.severity}, label=name, failed=True)


def metric(
    *,
    name: str | None = None,
    level: str = "trace",
    threshold: float | None = None,
    scale: tuple[float, float] = UNIT,
    labels: Mapping[str, float | Mapping[str, Any] | LabelDefinition] | None = None,
    question: str | None = None,
    needs: str = "nothing but the record",
    version: str | None = None,
    model: str | None = None,
    rubrics: tuple[Rubric, ...] = (),
) -> Made:
    """Make a metric of a function, or of a class with a method ``score``.

    >>> @metric(threshold=0.5)
    ... def brevity(trace):
    ...     '''Is the answer short enough to be read?'''
    ...     return min(1.0, 150 / max(1, len((trace.output or "").split())))
    >>> brevity.name
    'brevity'

    The function receives the subject of its ``level`` and, with a second parameter, the context. An ``async`` function
    receives the subject and a judge, and becomes a judged metric. It returns a number on ``scale``, a bool, a label, a
    pair of these and a reason, or a finding. ``None`` means not applicable. Exceptions become
    ``unscored(metric_error)``.

    Defaults: ``name``: the function's name; ``threshold``: the middle of ``scale``; ``question``: the first line of the
    docstring; ``version``: a hash of the module's source.
    """

    outcomes = {name: LabelDefinition.model_validate(outcome) for name, outcome in (labels or {}).items()}

    def decorate(given: Any) -> Metric:
        score = _score_of(given)
        doc = inspect.getdoc(given) or ""
        asks = question or doc.partition("\n")[0].strip()
        if not asks:
            raise ValueError(f"{given.__name__}: write its question as the first line of its docstring")
        shared: dict[str, Any] = {
            "level": level,
            "name": name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", given.__name__).lower(),
            "version": version or _source_digest(given),
            "threshold": sum(scale) / 2 if threshold is None else threshold,
            "question": asks,
            "needs": needs,
            "scale": written(scale),
            "about": doc or asks,
        }
        if not inspect.iscoroutinefunction(score):
            return Metric(**shared, kind="code", evaluate=_evaluate(score, scale, outcomes))

        async def ask(subject: Any, judge: Any) -> Finding | None:
            return finding(await score(subject, judge), scale, outcomes)

        return Metric(**shared, kind="llm", evaluate=_always_ask, ask=ask, rubrics=rubrics, model=model)

    return decorate


def _score_of(given: Any) -> Any:
    if not inspect.isclass(given):
        return given
    score = getattr(given(), "score", None)
    if not callable(score):
        raise ValueError(f"{given.__name__}: give the class a method score(self, trace)")
    return score


def _source_digest(given: Any) -> str:
    try:
        return source_digest(given)
    except ValueError as error:
        raise ValueError(f"{error}; give it a version") from error


def _always_ask(subject: Any, context: Any) -> None:
    """Send each subject to the judge."""


def _evaluate(
    score: Callable[..., Any], scale: tuple[float, float], labels: Mapping[str, LabelDefinition]
) -> Callable[[Any, Any], Finding | None]:
    if len(inspect.signature(score).parameters) < 2:
        return lambda subject, context: finding(score(subject), scale, labels)
    return lambda subject, context: finding(score(subject, context), scale, labels)


def finding(returned: Any, scale: tuple[float, float], labels: Mapping[str, LabelDefinition]) -> Finding | None:
    """Convert a return value to a finding. Raises ``TypeError`` or ``ValueError`` for other values."""
    reason = ""
    match returned:
        case (returned, str(reason)):
            pass
    match returned:
        case None | Score() | Assumed() | Unscored():
            return returned
        case bool():
            return scaled(scale[1] if returned else scale[0], scale, reason)
        case int() | float():
            return scaled(returned, scale, reason)
        case str() if returned in labels:
            return labelled(returned, labels, reason)
        case str():
            raise ValueError(f"{returned!r} is none of the metric's labels ({', '.join(labels) or 'it has none'})")
    raise TypeError(f"it returned a {type(returned).__name__}, and not {_WANTED}")

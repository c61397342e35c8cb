"""From a definition to a metric: the question to the judge, the shape of its answer, and the finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, create_model

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.silence import says_something
from pandaeval_collector.judge.desk import Judge
from pandaeval_collector.judge.rubric import Reason, Rubric, Verdict
from pandaeval_collector.scoring.custom.definition import UNKNOWN, Definition, LabelDefinition, scaled, written
from pandaeval_collector.scoring.metric import Metric
from pandaeval_otel.model import Trace

_ABOUT = {
    "turn": "Judge one turn of a conversation: the user's last words, what the agent did then, and what it answered. "
    "All that was said before is context, and not judged again.",
    "session": "Judge a whole conversation, from its first words to its last.",
}


def judged(**definition: Any) -> Metric[Any, Any]:
    """A metric that a judge answers, from the keys of a definition (:class:`Definition`)::

        TONE = judged(name="tone", criteria="The answer is calm and polite.", scale=[1, 5], threshold=3.5)

    Raises ``ValueError`` for what is wrong with them.
    """
    return build(Definition.model_validate(definition))


def build(definition: Definition) -> Metric[Any, Any]:
    """The metric of a definition. Raises ``ValueError`` for one that could not be run."""
    rubric: Rubric[Any] = Rubric(
        name=definition.name if definition.level == "trace" else f"{definition.level}_{definition.name}",
        version=definition.digest,  # never the user's own, which may stay the same: verdicts are remembered under it
        text="\n\n".join(_text(definition)),
        verdict=_verdict(definition),
    )

    async def ask(subject: Any, judge: Judge) -> Finding | None:
        return _finding(definition, await judge.ask(rubric, _given(subject)))

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
        about="\n\n".join(_about(definition)),
    )


def _before_asking(subject: Any, context: object) -> Finding | None:
    """Of a trace or a turn that shows neither an answer nor a step there is nothing to ask."""
    trace = subject if isinstance(subject, Trace) else getattr(subject, "trace", None)
    if not isinstance(trace, Trace):
        return None
    said = (trace.output, *(turn.assistant for turn in trace.turns), *trace.reasoning)
    if trace.tool_calls or any(text and says_something(text) for text in said):
        return None
    return Unscored(Why.NO_CONTENT, "neither an answer that says anything nor a step of the agent was captured")


def _given(subject: Any) -> dict[str, str]:
    """What is stated about the user, of subjects that know it: turns and conversations."""
    held = {name: getattr(subject, name, "") for name in ("goal", "profile")}
    held["knowledge"] = "\n".join(f"- {each}" for each in getattr(subject, "knowledge", ()))
    return {name: text for name, text in held.items() if text}


def _text(definition: Definition) -> Iterator[str]:
    if definition.level in _ABOUT:
        yield _ABOUT[definition.level]
    yield definition.asks
    if definition.criteria:
        yield definition.criteria.strip()
    if definition.steps:
        steps = "\n".join(f"{number}. {step.strip()}" for number, step in enumerate(definition.steps, 1))
        yield f"Go through these steps, one after the other, before you answer:\n{steps}"
    if definition.labels is not None:
        yield "Choices:\n" + "\n".join(_choice(name, label) for name, label in definition.labels.items())
        return
    least, most = definition.range
    yield f"Answer with a number from {least:g} (worst) to {most:g} (best)."
    if definition.guide:
        guide = sorted(definition.guide.items(), reverse=True)
        yield "Guide:\n" + "\n".join(f"{number:g}  {text.strip()}" for number, text in guide)


def _choice(name: str, label: LabelDefinition) -> str:
    return f'- "{name}": {label.meaning.strip()}' if label.meaning.strip() else f'- "{name}"'


def _about(definition: Definition) -> Iterator[str]:
    yield from _text(definition)
    if definition.labels is not None:
        yield "Scores: " + ", ".join(_scored(name, label) for name, label in definition.labels.items()) + "."
        return
    least, most = definition.range
    yield f"Scale: {least:g}-{most:g}, {most:g} is best."


def _scored(name: str, label: LabelDefinition) -> str:
    return f"{name} {label.score:g}" + (f" ({label.severity})" if label.severity else "")


def _verdict(definition: Definition) -> type[Verdict]:
    reason: Any = (Reason, Field(description="What in the record bears out the answer, in one to three sentences."))
    if definition.labels is not None:
        choices: Any = Literal[(*definition.labels, UNKNOWN)]
        about = f'One of the choices; "{UNKNOWN}" if the record does not suffice to tell.'
        return create_model(definition.name, __base__=Verdict, reason=reason, label=(choices, Field(description=about)))
    least, most = definition.range
    number: Any = (
        float | None,
        Field(ge=least, le=most, description="By the criteria. Null if the record does not suffice to tell."),
    )
    return create_model(definition.name, __base__=Verdict, reason=reason, score=number)


def _finding(definition: Definition, verdict: Any) -> Finding:
    value = verdict.score if definition.labels is None else verdict.label
    if value is None or value == UNKNOWN:
        return Unscored(Why.INSUFFICIENT_EVIDENCE, f"the judge could not tell: {verdict.reason}")
    if definition.labels is None:
        return scaled(value, definition.range, verdict.reason)
    return labelled(value, definition.labels, verdict.reason)


def labelled(
    name: str, labels: Mapping[str, LabelDefinition], reason: str, metadata: Mapping[str, Any] | None = None
) -> Score:
    """The score of a label. One with a severity fails, and its result names it."""
    label = labels[name]
    if label.severity is None:
        return Score(label.score, reason, dict(metadata or {}), label=name)
    return Score(label.score, reason, {**(metadata or {}), "severity": label.severity}, label=name, failed=True)

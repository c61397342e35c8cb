"""A function or a class as a metric, by a decorator."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pandaeval_collector.base.runtime.modules import source_digest
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.judge.rubric import Rubric
from pandaeval_collector.scoring.custom.definition import UNIT, LabelDefinition, scaled, written
from pandaeval_collector.scoring.custom.judged import labelled
from pandaeval_collector.scoring.metric import Metric

_WANTED = "a number, True or False, a label, a pair of one of these and a reason, a Score, an Unscored or None"

Made = Callable[[Any], Metric[Any, Any]]


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
    rubrics: tuple[Rubric[Any], ...] = (),
    unscored: tuple[Why, ...] = (),
    settings: Mapping[str, Any] | None = None,
) -> Made:
    """Makes a metric of the function below it, or of a class with a method ``score``::

        @metric(threshold=0.5)
        def brevity(trace):
            '''Is the answer short enough to be read?'''
            return min(1.0, 150 / max(1, len((trace.output or "").split())))

    The function is called with the trace (or what else is of its ``level``) and, where it takes a second argument, with
    the context; an ``async`` one with the trace and a judge, which makes it a judged metric. It returns a number on
    ``scale``, a bool, one of ``labels``, a pair of one of these and the reason, or any finding; ``None``: does not
    apply. What it raises is ``unscored(metric_error)``.

    ``name``: else the function's; ``threshold``: on ``scale``, else its middle; ``question``: else the first line of
    the docstring; ``version``: else a hash of the source of its module.
    """

    def decorate(given: Any) -> Metric[Any, Any]:
        called: Callable[..., Any] = _method(given) if inspect.isclass(given) else given
        known = {label: _as_label(of) for label, of in (labels or {}).items()}
        doc = inspect.getdoc(given) or ""
        asks = question or doc.partition("\n")[0].strip()
        if not asks:
            raise ValueError(f"{given.__name__}: write its question as the first line of its docstring")
        judged = inspect.iscoroutinefunction(called)

        def found(said: Any) -> Finding | None:
            return finding(said, scale, known)

        return Metric(
            level=level,
            name=name or _snake(given.__name__),
            kind="llm" if judged else "code",
            version=version or _digest(given),
            threshold=sum(scale) / 2 if threshold is None else threshold,
            question=asks,
            needs=needs,
            evaluate=(lambda subject, context: None) if judged else _evaluating(called, found),
            ask=_asking(called, found) if judged else None,
            rubrics=rubrics,
            unscored=unscored,
            settings=settings or {},
            scale=written(scale),
            model=model,
            about=doc or asks,
        )

    return decorate


def finding(said: Any, scale: tuple[float, float], labels: Mapping[str, LabelDefinition]) -> Finding | None:
    """What a function's return value means. Raises ``TypeError`` and ``ValueError`` for what means nothing."""
    reason: str = ""
    metadata: Mapping[str, Any] = {}
    match said:
        case (said, str(reason)):
            pass
        case (said, str(reason), Mapping() as metadata):
            pass
    match said:
        case None | Score() | Assumed() | Unscored():
            return said
        case bool():
            return scaled(scale[1] if said else scale[0], scale, reason, metadata)
        case int() | float():
            return scaled(said, scale, reason, metadata)
        case str() if said in labels:
            return labelled(said, labels, reason, metadata)
        case str():
            raise ValueError(f"{said!r} is none of the metric's labels ({', '.join(labels) or 'it has none'})")
    raise TypeError(f"it returned a {type(said).__name__}, and not {_WANTED}")


def _method(written: Callable[[], Any]) -> Callable[..., Any]:
    """``score`` of an instance of a class. Raises ``ValueError`` for a class without one."""
    score: Callable[..., Any] | None = getattr(written(), "score", None)
    if not callable(score):
        raise ValueError(f"{getattr(written, '__name__', written)}: give the class a method score(self, trace)")
    return score


def _evaluating(
    called: Callable[..., Any], found: Callable[[Any], Finding | None]
) -> Callable[[Any, Any], Finding | None]:
    if len(inspect.signature(called).parameters) > 1:
        return lambda subject, context: found(called(subject, context))
    return lambda subject, context: found(called(subject))


def _asking(
    called: Callable[..., Awaitable[Any]], found: Callable[[Any], Finding | None]
) -> Callable[[Any, Any], Awaitable[Finding | None]]:
    async def ask(subject: Any, judge: Any) -> Finding | None:
        return found(await called(subject, judge))

    return ask


def _as_label(given: float | Mapping[str, Any] | LabelDefinition) -> LabelDefinition:
    if isinstance(given, LabelDefinition):
        return given
    return LabelDefinition.model_validate(dict(given) if isinstance(given, Mapping) else {"score": given})


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _digest(given: Any) -> str:
    try:
        return source_digest(given)
    except ValueError as error:
        raise ValueError(f"{error}; give it a version") from error

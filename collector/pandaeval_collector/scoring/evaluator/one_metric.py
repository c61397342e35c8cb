"""Runs a metric on a subject within the trace's time limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pandaeval_collector.base.result import keep_little
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.scoring.metric import Metric, Texts
from pandaeval_otel.base.component_errors import ERRORS, METRIC
from pandaeval_otel.model import Trace

T = TypeVar("T")
_FINDINGS = (Score, Assumed, Unscored)
_FRAGMENT = Unscored(Why.INCOMPLETE_TRACE, "only a part of a trace over several services came here")


def ask(metric: Metric[Any, Any], subject: Any, context: Any, refusal: Unscored | None) -> Finding | None:
    """Return a metric's finding, or ``refusal`` if given; ``None`` if not applicable.

    Exceptions become ``metric_error``; no time left is ``timeout``.
    """
    try:
        if LIMIT.is_over:
            raise OverTimeError
        LIMIT.step(metric.key)
        finding = metric.evaluate(subject, context)
        if finding is not None and not isinstance(finding, _FINDINGS):
            raise TypeError(f"{metric.key} handed back a {type(finding).__name__}, and no Score, Assumed or Unscored")
        if finding is not None:
            keep_little(finding)
    except OverTimeError:
        finding = Unscored(Why.TIMEOUT, LIMIT.reason)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a metric's bug must cost one result
        texts: Texts | None = getattr(context, "texts", None)
        if not (texts is not None and error is texts.lost):
            ERRORS.note(METRIC, metric.key, error)
        finding = Unscored(Why.METRIC_ERROR, explained(error))
    return finding if finding is None or refusal is None else refusal


def attempt(metric: Metric[Any, Any], call: Callable[[Any], T], subject: Any, otherwise: T) -> T:
    LIMIT.step(metric.key)
    try:
        return call(subject)
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        ERRORS.note(METRIC, metric.key, error)
        return otherwise


def refusal(trace: Trace) -> Unscored | None:
    """Return why this trace must not be scored; ``None`` if it may."""
    return _FRAGMENT if trace.fragment else None

"""Runs a metric on a subject within the trace's time limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pandaeval_collector.base.result import keep_little
from pandaeval_collector.base.score import Assumed, Finding, NotCapturedError, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.scoring.metric import Metric, Texts
from pandaeval_otel.base.component_errors import ERRORS, METRIC
from pandaeval_otel.base.semconv import PANDAEVAL_UNTRACED
from pandaeval_otel.model import Trace

T = TypeVar("T")
_FINDINGS = (Score, Assumed, Unscored)
_OF_CALLS = frozenset(
    (
        *("trace.grounding", "trace.tool_loop", "trace.tool_correctness", "trace.argument_correctness"),
        *("trace.step_efficiency", "trace.confidence", "trace.plan_quality", "trace.plan_adherence"),
        *("trace.task_completion", "trace.correctness", "turn.faithfulness", "turn.agent_behavior_failure"),
        "turn.tool_call_behavior_failure",
    )
)
"""Metrics that read tool calls."""
_UNTRACED = Unscored(Why.NO_CONTENT, "the agent sent no spans, so its tool calls are not known")


def run_metric(metric: Metric, subject: Any, context: Any, refusal: Unscored | None = None) -> Finding | None:
    """Return a metric's finding, or ``refusal`` if given; ``None`` if not applicable.

    Exceptions become ``metric_error``. If no time is left, the result is ``timeout``.
    """
    if metric.key in _OF_CALLS and is_untraced(getattr(subject, "trace", subject)):
        return _UNTRACED
    try:
        if LIMIT.is_over:
            raise OverTimeError
        LIMIT.step = metric.key
        finding = metric.evaluate(subject, context)
        if finding is not None and not isinstance(finding, _FINDINGS):
            raise TypeError(f"{metric.key} handed back a {type(finding).__name__}, and no Score, Assumed or Unscored")
        if finding is not None:
            keep_little(finding)
    except OverTimeError:
        finding = Unscored(Why.TIMEOUT, LIMIT.reason)
    except NotCapturedError as error:
        finding = Unscored(Why.NO_CONTENT, str(error))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a metric's bug affects one result
        texts: Texts | None = getattr(context, "texts", None)
        if not (texts is not None and error is texts.lost):
            ERRORS.note(METRIC, metric.key, error)
        finding = Unscored(Why.METRIC_ERROR, explained(error))
    return finding if finding is None or refusal is None else refusal


def call_or_default(metric: Metric, call: Callable[[Any], T], subject: Any, otherwise: T) -> T:
    LIMIT.step = metric.key
    try:
        return call(subject)
    except Exception as error:  # noqa: BLE001 - the user's code can raise any exception
        ERRORS.note(METRIC, metric.key, error)
        return otherwise


def is_untraced(trace: Trace) -> bool:
    """Return whether the trace has only the messages, because the agent sent no spans."""
    return not trace.tool_calls and any(PANDAEVAL_UNTRACED in span.attributes for span in trace.spans)

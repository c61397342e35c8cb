"""Runs one metric on one subject, or finds out why it must not run."""

from __future__ import annotations

from typing import Any

from pandaeval_collector.base.concluding import keep_little
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.scoring.evaluator.settings import EvaluatorSettings
from pandaeval_collector.scoring.metric import Metric, Texts
from pandaeval_otel.base.component_errors import ERRORS, METRIC
from pandaeval_otel.model import Trace

_FINDINGS = (Score, Assumed, Unscored)
_FRAGMENT = Unscored(
    Why.INCOMPLETE_TRACE,
    "only a part of a trace over several services came here (close.score_fragments scores such parts)",
)
_ROOTLESS = Unscored(
    Why.INCOMPLETE_TRACE,
    "the root span did not come here, so that other spans may have gone elsewhere as well (close.score_rootless)",
)


def ask(metric: Metric[Any, Any], subject: Any, context: Any, refusal: Unscored | None) -> Finding | None:
    """The finding of a metric, or ``refusal`` instead of it if there is one; ``None`` when the metric does not apply. A
    metric that raises gives ``unscored(metric_error)``."""
    try:
        finding = metric.evaluate(subject, context)
        if finding is not None and not isinstance(finding, _FINDINGS):
            raise TypeError(f"{metric.key} handed back a {type(finding).__name__}, and no Score, Assumed or Unscored")
        if finding is not None:
            keep_little(finding)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a metric's bug must cost one result
        if not _is_the_embedders(error, context):
            ERRORS.note(METRIC, metric.key, error)
        finding = Unscored(Why.METRIC_ERROR, explained(error))
    return finding if finding is None or refusal is None else refusal


def _is_the_embedders(error: BaseException, context: Any) -> bool:
    """Whether a metric raised only because the texts that it compares could not be embedded, which is noted."""
    texts: Texts | None = getattr(context, "texts", None)
    return texts is not None and error is texts.lost


def refusal(trace: Trace, settings: EvaluatorSettings) -> Unscored | None:
    """Why no metric may score this trace; ``None`` when each may."""
    if trace.fragment:
        return None if settings.score_fragments else _FRAGMENT
    return None if trace.complete or settings.score_rootless else _ROOTLESS

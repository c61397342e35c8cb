"""Which metrics run, what their results are about, and how one of them runs on one subject."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from pandaeval_collector.base.result import Unit, keep_little
from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.base.time_limit import LIMIT, OverTimeError
from pandaeval_collector.base.untrusted.foreign import explained
from pandaeval_collector.base.untrusted.stated import stated
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metric import Metric, Texts
from pandaeval_otel.assembly import DueTrace
from pandaeval_otel.base import semconv
from pandaeval_otel.base.component_errors import ERRORS, METRIC
from pandaeval_otel.model import Trace


def running_metrics(
    registry: Mapping[str, Metric[Any, Any]], enabled: Collection[str] | None
) -> tuple[tuple[Metric[Any, Any], ...], frozenset[str]]:
    """Returns the metrics to run, in the order of the registry, and the keys of those that run for session metrics
    only, whose results are neither shown nor exported. ``enabled``: keys of metrics of the ``registry``; ``None``: all.
    Judged metrics run only if they are enabled: they cost money."""
    if enabled is None:
        return tuple(registry.values()), frozenset()
    read = {name for key, metric in registry.items() if key in enabled for name in metric.signals}
    silent = frozenset(
        key
        for key, metric in registry.items()
        if metric.level == "trace" and metric.kind != "llm" and metric.name in read and key not in enabled
    )
    return tuple(metric for key, metric in registry.items() if key in enabled or key in silent), silent


def trace_unit(trace: Trace, evidence: str | None = None) -> Unit:
    """Makes the unit of a trace: its evaluated span is the outermost agent's."""
    case, trial = stated(trace, semconv.PANDAEVAL_CASE_ID, semconv.PANDAEVAL_TRIAL)
    roots = [span for span in trace.spans if span.span_id == trace.root_span_id]
    return Unit(
        level="trace",
        id=trace.trace_id,
        trace_id=trace.trace_id,
        span_id=trace.root_span_id,
        session_id=trace.session_id,
        agent=trace.agent,
        service=trace.service,
        environment=trace.environment,
        evidence=evidence or trace.digest,
        revision=trace.revision,
        trigger=str(trace.trigger),
        late_spans=trace.late_spans,
        response_id=trace.response_id,
        end_ns=roots[0].end_ns if roots else trace.end_ns,
        sampled=trace.sampled,
        case=case,
        trial=trial,
    )


def turn_unit(view: TurnView) -> Unit:
    """Makes the unit of a turn: its evaluated span is the one that answers."""
    unit = trace_unit(view.trace)
    span_id = view.span_id
    unit.level, unit.id, unit.span_id = "turn", f"{unit.trace_id}:{span_id}", span_id
    unit.end_ns = next((span.end_ns for span in view.trace.spans if span.span_id == span_id), unit.end_ns)
    return unit


def unread(due: DueTrace) -> Unit:
    """Makes the unit of a trace that cannot be read: its evidence is made of the ids of what came."""
    known = hashlib.blake2b(b"".join(sorted(due.known)), digest_size=16).hexdigest()
    return Unit(
        level="trace",
        id=due.trace_id.hex(),
        trace_id=due.trace_id.hex(),
        span_id="",
        agent="unknown_service",
        service="unknown_service",
        evidence=known,
        revision=due.revision,
        trigger=due.trigger.value,
        late_spans=due.late_spans,
        end_ns=time.time_ns(),
    )


_FINDINGS = (Score, Assumed, Unscored)
_FRAGMENT = Unscored(Why.INCOMPLETE_TRACE, "only a part of a trace over several services came here")


def ask(metric: Metric[Any, Any], subject: Any, context: Any, refusal: Unscored | None) -> Finding | None:
    """Runs a metric; returns its finding, or ``refusal`` in its place if there is one; ``None`` when the metric does
    not apply. A metric that raises gives ``unscored(metric_error)``, one for which there is no time left
    ``unscored(timeout)``."""
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


T = TypeVar("T")


def attempt(metric: Metric[Any, Any], call: Callable[[Any], T], subject: Any, otherwise: T) -> T:
    """Calls a function of a metric; returns ``otherwise`` where it raises: a metric's bug must cost its own result, and
    no other's."""
    LIMIT.step(metric.key)
    try:
        return call(subject)
    except Exception as error:  # noqa: BLE001 - the user's own code may raise anything
        ERRORS.note(METRIC, metric.key, error)
        return otherwise


def refusal(trace: Trace) -> Unscored | None:
    """Returns why no metric may score this trace; ``None`` when all may."""
    return _FRAGMENT if trace.fragment else None

"""Generates the metric list in ``docs/reference/telemetry.md``.

``python tests/support/own_metrics.py`` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pandaeval_collector.base import telemetry
from pandaeval_collector.base.instrument import Instrument
from pandaeval_collector.exporters.prometheus import metric_name
from pandaeval_collector.store import series

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "telemetry.md"
_EVALUATED = "`gen_ai.evaluation.name`, `level`, `gen_ai.agent.name`, `service`, `deployment.environment.name`"
_RATED = "`gen_ai.evaluation.name`, `level`, `gen_ai.agent.name`"
_OF_AGENT = "`gen_ai.agent.name`, `service`"
_JUDGED = "`gen_ai.evaluation.name`, `gen_ai.request.model`, `outcome`"
_CALLED = "`gen_ai.operation.name` (chat), `gen_ai.provider.name`, `gen_ai.request.model`"
ATTRIBUTES: Mapping[str, str] = {
    "pandaeval.spans": "`outcome` (decoded = stored + duplicate + own_output + rejected + ignored), `reason`",
    "pandaeval.logs": "as for `pandaeval.spans`",
    "pandaeval.claims": "`outcome` (own_output), `reason` (spans, logs)",
    "pandaeval.pass_rate": _RATED,
    "pandaeval.pass_rate.low": _RATED,
    "pandaeval.pass_rate.high": _RATED,
    "pandaeval.pass_rate.labels": _RATED,
    "pandaeval.failure_groups": (
        "`failure.group` (ID of the incident, or `__other__`), `failure.label`, `failure.severity`"
    ),
    "pandaeval.failure_groups.returned": "as for `pandaeval.failure_groups`",
    "pandaeval.failures": "`failure.label`, `failure.severity`, `gen_ai.agent.name`, `service`",
    "pandaeval.items": "`outcome` (resumed, decided, moved)",
    "pandaeval.members": "`outcome` (taken, rejected), `reason` (failed)",
    "pandaeval.log.messages": "`outcome` (read, dead, lost), `reason` (malformed, lost)",
    "pandaeval.log.partitions": "`outcome` (taken, released)",
    "pandaeval.log.errors": "`outcome` (retried, told, not_committed)",
    "pandaeval.traces": "`outcome` (decided, failed), `reason` (root_ended, explicit, idle, max_age, span_limit …)",
    "pandaeval.sessions": "`outcome` (failed), `reason`",
    "pandaeval.workers": "`outcome` (started, ended, not_started), `reason` (signal_9, exit_1 …)",
    "pandaeval.judges": "`outcome` (started, ended, not_started), `reason` (signal_9, exit_1 …)",
    "pandaeval.readers": "`outcome` (started, ended, not_started), `reason` (signal_9, exit_1 …)",
    "pandaeval.jobs": "`outcome` (done, put_back, dead, cancelled, parked), `reason`",
    "pandaeval.runs": "`outcome` (ended, failed, given_up, scheduled, process_ended)",
    "pandaeval.requests": "`outcome` (accepted, partial, or the reason of a refusal), `reason` (the protocol)",
    "pandaeval.exporter.items": "`exporter`, `signal`, `outcome` (sent, dropped), `reason`",
    "pandaeval.component.errors": "`component` (name of the component), `kind` (dialect, metric, exporter, embedder)",
    "pandaeval.store.errors": "`outcome` (refused, retried, left, upkeep, put_aside, probe)",
    "pandaeval.queue.size": "`queue` (store, judge, outbox.logs, outbox.traces)",
    "pandaeval.exporter.state": "`exporter`, `signal`",
    "pandaeval.judge.answers": "`outcome` (asked, remembered)",
    "pandaeval.evaluation.score": _EVALUATED,
    "pandaeval.evaluations": f"{_EVALUATED}, `outcome`, `why`, `passed`, `verdict`",
    "pandaeval.revisions": "`gen_ai.evaluation.name`, `level`, `service`",
    "pandaeval.judge.duration": _JUDGED,
    "pandaeval.judge.tokens": _JUDGED,
    "pandaeval.judge.cost": _JUDGED,
    "pandaeval.judge.cached_tokens": _JUDGED,
    "gen_ai.client.operation.duration": _CALLED,
    "gen_ai.client.token.usage": f"{_CALLED}, `gen_ai.token.type` (input, output)",
    **dict.fromkeys(("pandaeval.agent.tokens", "pandaeval.agent.cost", "pandaeval.agent.unpriced"), _OF_AGENT),
}
"""Attributes that distinguish series; unlisted instruments have one series."""


def instruments() -> list[Instrument]:
    return [*telemetry.INSTRUMENTS.values(), *series.INSTRUMENTS.values()]


def listing() -> str:
    return "\n".join([*map(_item, instruments()), ""])


def written(page: str) -> str:
    head, start, rest = page.partition("<!-- own metrics -->\n")
    _, end, tail = rest.partition("<!-- end of own metrics -->")
    return head + start + listing() + end + tail


def prometheus_name(each: Instrument) -> str:
    name, _ = metric_name(each.name, each.unit)
    return f"{name}_total" if each.kind == "counter" else name


def _item(each: Instrument) -> str:
    by = ATTRIBUTES.get(each.name)
    text = f"- **`{each.name}`** (`{prometheus_name(each)}`; {each.kind}): {each.description}"
    return f"{text}. Attributes: {by}." if by else f"{text}."


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

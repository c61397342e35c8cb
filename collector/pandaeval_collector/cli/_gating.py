"""The configured thresholds against a run: which are missed, and which could not be measured and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson

from pandaeval_collector.base.result import Result, cut
from pandaeval_collector.cli._gates import GateOutcome, gates
from pandaeval_collector.cli._summary import Summary
from pandaeval_collector.config import Config, MetricNames
from pandaeval_collector.runs.settings import scoring
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.store.failures import RootCause
from pandaeval_collector.store.failures.failure import at_least

# Failure groups in the output of ``pandaeval evaluate``: in the tables, among the results, and as a gate.
KEY = "failures"


def severity_gate(groups: Sequence[RootCause], least: str | None) -> GateOutcome:
    """Returns a gate that fails if a group is as grave as ``gates.fail_on_error_severity`` (``None``: never)."""
    grave = [group for group in groups if least is not None and at_least(group.severity, least)]
    if not grave:
        return GateOutcome(KEY, True)
    many = f"{len(grave)} group{'' if len(grave) == 1 else 's'} of failures"
    text = f"{KEY} (gates.fail_on_error_severity {least}): {many} of that severity or graver"
    examples = (
        f"[{group.severity}] {group.title} ({group.count} occurrence(s)): "
        + ", ".join(member.place for member in group.examples)
        for group in grave[:3]
    )
    return GateOutcome(KEY, False, text, tuple(examples))


def with_groups(failed: Iterable[Result], groups: Sequence[RootCause]) -> Iterator[bytes]:
    """Yields failed results as JSON, each with its group (``metadata.failure_group``)."""
    of_result = {member.result: group.to_dict() for group in groups for member in group.members}
    for result in failed:
        held = orjson.loads(result.to_json())
        held["metadata"]["failure_group"] = of_result.get(result.id)
        yield orjson.dumps(held)


_REASON = 200
"""So much of the reason of an example is shown."""


def checked(config: Config, summary: Summary) -> list[GateOutcome]:
    """Returns the outcomes of the thresholds that ``metrics.thresholds`` sets, and that of the failure groups."""
    found = gates(
        scoring(config).thresholds,
        config.gates.max_unscored,
        summary.outcomes,
        summary.values(),
        lambda key: _silent(config, summary, key),
        lambda key: (f"{each.value:g} in {each.where}: {cut(each.reason, _REASON)}" for each in summary.worst(key)),
    )
    return [*found, severity_gate(summary.groups, config.gates.fail_on_error_severity)]


def unanswered(config: Config, summary: Summary, asked: Sequence[str]) -> Iterator[str]:
    """Yields a sentence for each metric in ``asked`` that gave no result at all: why there is none."""
    names = MetricNames((metric.level, metric.name) for metric in registry(config.metrics.modules).values())
    given = {key for key, _, _ in summary.outcomes}
    graded = any(key.startswith("trial.") for key in given)
    wanted = [key for name in asked for key in names.select(name) if graded or key == name or key[:6] != "trial."]
    for key in (key for key in wanted if key not in given):
        yield f"{key} has no result: {_silent(config, summary, key)[1].removeprefix('passes unmeasured: ')}"


def _silent(config: Config, summary: Summary, key: str) -> tuple[bool, str]:
    """Returns whether a metric that gave no result at all passes, and why there is none."""
    metric, settings = registry(config.metrics.modules)[key], scoring(config)
    if settings.enabled is not None and key not in settings.enabled:
        return True, "not checked: it was not asked (--metrics, metrics.enabled)"
    if metric.kind == "llm" and settings.judge is None:
        return False, "cannot be checked: no judge is configured; name one with --model, or take the threshold out"
    if not summary.agents_traces:
        return True, "passes unmeasured: the input has no agent traces"
    if metric.level == "trial" and not any(name.startswith("trial.") for name, _, _ in summary.outcomes):
        return False, "cannot be checked: no trace of the input is a trial of a case; name a case file with --cases"
    if (metric.level == "session" or metric.needs_session) and not summary.has_sessions:
        return True, (
            "passes unmeasured: no trace of the input has a session id; have the application set "
            "gen_ai.conversation.id (or session.id) on its spans"
        )
    limits = config.judge.only
    is_limited = metric.kind == "llm" and (limits.agents or limits.services or limits.attributes)
    only = "; judge.only leaves traces out" if is_limited else ""
    return True, f"passes unmeasured: it applies to nothing in the input (it needs {metric.needs}){only}"

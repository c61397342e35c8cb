"""Decides whether a run passes: thresholds, severity of failures, and cases.

Missing content (``no_content``) and results that were not sampled count in no share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pandaeval_collector.base.result import TOLERANCE, cut
from pandaeval_collector.base.untrusted.printable import excerpt
from pandaeval_collector.cli._output import many
from pandaeval_collector.config import Config
from pandaeval_collector.runs.settings import scoring
from pandaeval_collector.scoring.registry import registry
from pandaeval_collector.show.view.rates import OutcomeCounts
from pandaeval_collector.show.view.unscored import CURES
from pandaeval_collector.store.failures import at_least
from pandaeval_lab.cli._names import names_of
from pandaeval_lab.cli._summary import Summary
from pandaeval_lab.replay.root_causes import RootCause
from pandaeval_lab.report.layers import LayerReport, TrialCount

if TYPE_CHECKING:  # `evaluate` must not import gRPC
    from pandaeval_lab.running.attempts import Attempted

_NOT_EXPECTED = frozenset({"no_content", "not_sampled"})
KEY = "failures"
_REASON = 200
"""Maximum characters of the reason of an example."""
CASE = "case "
"""Prefix of the keys of case gates."""
_ATTEMPTS = "attempts"
"""Key of the gate that fails if no attempt finishes."""
_OVERRIDDEN = " (--no-fail: this does not fail the run)"
_REPORTED = " (only configured gates fail evaluate, such as metrics.thresholds: {trial.trial_correct: 1})"


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """The outcome of a gate: a threshold, the severity of failures, a case or the baseline."""

    key: str
    passed: bool
    text: str = ""
    examples: tuple[str, ...] = ()


def outcome_of(threshold: float, max_unscored: float, tally: OutcomeCounts, mean: float) -> tuple[bool, str]:
    """Return whether a metric passes its threshold, in the scale of the metric, and why.

    The metric fails below the threshold, without any score (unless all results are assumed), or above ``max_unscored``
    (0..1). Unclear and disputed verdicts fail no threshold.
    """
    scored, whys = tally.scored, tally.unscored
    # Results that should have a score come first.
    worst = max(whys, key=lambda why: (why not in _NOT_EXPECTED, whys[why]), default="")
    cure = f". {CURES[worst]}" if worst in CURES else ""
    if not scored and not whys:
        return True, f"passes unmeasured: there was nothing to evaluate in {many(tally.assumed, 'result')} (assumed)"
    if not scored:
        return False, f"none of {many(tally.missing, 'result')} has a score ({tally.whys}){cure}"
    failures = []
    if (decided := scored - tally.open) and mean < threshold - TOLERANCE:
        failures.append(
            f"the mean of {many(decided, 'score')} is {mean:.4f}; --format json shows all of them, "
            "--format html shows the failures"
        )
    missing = sum(count for why, count in whys.items() if why not in _NOT_EXPECTED)
    if missing > max_unscored * (scored + missing):
        failures.append(
            f"{missing} of {scored + missing} results have no score ({missing / (scored + missing):.0%}, and "
            f"gates.max_unscored is {max_unscored:.0%}), most often because of {worst}{cure}"
        )
    if not decided and not failures:
        return True, f"passes unmeasured: {tally.decided}"
    return not failures, "; ".join(failures)


def severity_gate(groups: Sequence[RootCause], least: str | None) -> GateOutcome:
    """Return a gate for ``gates.fail_on_error_severity`` (``None``: never fails)."""
    grave = [group for group in groups if least is not None and at_least(group.severity, least)]
    if not grave:
        return GateOutcome(KEY, True)
    count = many(len(grave), "incident")
    text = f"{KEY} (fail_on_error_severity {least}): {count} with this severity or a higher severity"
    return GateOutcome(KEY, False, text, tuple(f"{group.heading}: {group.places}" for group in grave[:3]))


def checked(config: Config, summary: Summary) -> list[GateOutcome]:
    """Return the outcome of each threshold, and of the severity of failures."""
    found, means = [], summary.values()
    for key, threshold in scoring(config).thresholds.items():
        tally = summary.tallies.get(key)
        if tally is None:
            passed, text = _silent(config, summary, key)
        else:
            passed, text = outcome_of(threshold, config.gates.max_unscored, tally, means.get(key, 0.0))
        worst = () if passed else summary.worst(key)
        examples = tuple(f"{each.value:g} in {each.where}: {cut(each.reason, _REASON)}" for each in worst)
        found.append(GateOutcome(key, passed, f"{key} (threshold {threshold:g}): {text}" if text else "", examples))
    return [*found, severity_gate(summary.groups, config.gates.fail_on_error_severity)]


def unscored_notes(config: Config, summary: Summary, asked: Sequence[str]) -> Iterator[str]:
    names = names_of(config)
    given = summary.tallies
    graded = any(key.startswith("trial.") for key in given)
    wanted = [key for name in asked for key in names.select(name) if graded or key == name or key[:6] != "trial."]
    for key in (key for key in wanted if key not in given):
        yield f"{key} has no result: {_silent(config, summary, key)[1].removeprefix('passes unmeasured: ')}"


def _silent(config: Config, summary: Summary, key: str) -> tuple[bool, str]:
    metric, settings = registry(config.metrics.modules)[key], scoring(config)
    if settings.enabled is not None and key not in settings.enabled:
        return True, "not checked: the metric is not selected (--metrics, metrics.enabled)"
    if metric.kind == "llm" and settings.judge is None:
        return False, "cannot be checked: no judge is configured; name a model with --model, or remove the threshold"
    if not summary.agents_traces:
        return True, "passes unmeasured: the input has no agent traces"
    if metric.level == "trial" and not any(name.startswith("trial.") for name in summary.tallies):
        return False, "cannot be checked: no trace of the input is a trial of a case; name a case file with --cases"
    if (metric.level == "session" or metric.needs_session) and not summary.has_sessions:
        return True, (
            "passes unmeasured: no trace of the input has a session id; have the application set "
            "gen_ai.conversation.id (or session.id) on its spans"
        )
    only = "; judge.only excludes traces" if metric.kind == "llm" and config.judge.only else ""
    may_wait = metric.kind == "llm" and metric.level in ("trace", "turn") and key not in settings.thresholds
    if may_wait and not only and settings.judge is not None and settings.judge.detail != "all":
        why = f"the judge was not asked (judge.detail: {settings.judge.detail})"
        return True, f"passes unmeasured: {why}; set judge.detail to all, or give the metric a threshold"
    return True, f"passes unmeasured: the metric does not apply to the input (it needs {metric.needs}){only}"


@dataclass(frozen=True, slots=True)
class CaseGates:
    """The rules of ``pandaeval cases run`` for its exit code.

    - A regression case, or a case with a scenario, fails the run if most of its trials are incorrect. It also fails the
      run if no trial is correct and a grader has no score.
    - Another capability case fails the run only by a threshold or the baseline.
    - If every attempt ended with an error, the run fails.

    ``no_fail``: failing cases are only reported. The last rule still applies.
    """

    attempts: Sequence[Attempted]
    no_fail: bool

    def outcomes(self, report: LayerReport) -> Iterator[GateOutcome]:
        """Yield failing cases, worst first, and an outcome if no attempt finished."""
        yield from failing_cases(report, self.no_fail, _OVERRIDDEN * self.no_fail)
        errors = [attempt.error or attempt.spoilt for attempt in self.attempts if attempt.has_ended]
        if errors and all(errors):
            problem = f"none of {many(len(errors), 'attempt')} finished: {excerpt(errors[0], _REASON)}"
            yield GateOutcome(_ATTEMPTS, False, problem)


def failing_cases(report: LayerReport, passed: bool = True, note: str = _REPORTED) -> Iterator[GateOutcome]:
    """Yield cases that fail a run, worst first.

    By default, they are notices, because only configured gates change the exit code of ``evaluate``.
    """
    for case, count in report.cases().items():
        if count.fails:
            yield GateOutcome(CASE + case, passed, f"case {case}: {_case_problem(count)}{note}")


def _case_problem(count: TrialCount) -> str:
    trials = many(count.trials, "trial")
    if 2 * count.correct[False] > count.trials:
        return f"{count.correct[False]} of {trials} not correct: {excerpt(count.failed, _REASON)}"
    return f"none of {trials} is correct, and a grader has no score: {excerpt(count.unscored, _REASON)}"

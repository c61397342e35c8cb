"""Groups results into trials of cases with success.

A case is a result's ``metadata.case``, or that of its session's other results. Results with the same ``metadata.trial``
and session form a trial; without a session, those with the same trial; without both, each trace. A result of level
``trial`` is a trial. A trial succeeded if all results pass, failed if any does not, and is undetermined if a result has
no score. Assumed values determine nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pandaeval_collector.base.errors import UserError

TRIAL_CORRECT = "trial.trial_correct"
Per = Literal["case", "conversation"]
_STEPS = ("trace", "turn")
"""Levels of results about a step of a conversation."""
Trial = tuple[str, str]
"""Name of the trial, and its session or trace."""
_READ = ("metric", "level", "outcome", "success", "session_id", "trace_id", "span_id", "agent", "revision")
_ABOUT = ("case", "trial", "case_kind", "k")


@dataclass(slots=True)
class CaseOutcomes:
    """The trials of a case, or interactions of a conversation: ``None`` is undetermined.

    ``kind``: ``regression``, ``capability`` or empty. ``scores``: of the results of a case, if they hold them.
    """

    id: str
    trials: dict[Trial, bool | None] = field(default_factory=dict)
    kind: str = ""
    agents: set[str] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.trials) - self.undetermined

    @property
    def c(self) -> int:
        return sum(passed is True for passed in self.trials.values())

    @property
    def undetermined(self) -> int:
        return sum(passed is None for passed in self.trials.values())


@dataclass(frozen=True, slots=True)
class CaseTrials:
    """All cases of a metric (``level.name``), by id. ``per``: ``conversation`` if trials are interactions."""

    metric: str
    per: Per
    cases: tuple[CaseOutcomes, ...]

    @property
    def counts(self) -> list[tuple[int, int]]:
        return [(case.n, case.c) for case in self.cases]


def slim(result: Mapping[str, Any]) -> dict[str, Any]:
    about = _about(result)
    return {name: result.get(name) for name in _READ} | {
        "metadata": {key: about[key] for key in _ABOUT if key in about}
    }


def trials(results: Iterable[Mapping[str, Any]], metric: str | None = None, per: Per | None = None) -> CaseTrials:
    """Collect a metric's trials.

    ``per``: by conversation or case; default: by case if any is named. Raises ``UserError`` without trials.
    """
    standing = _standing(results)
    if not standing:
        raise UserError("the input contains no results; `pandaeval evaluate --format json` writes them")
    steps = [each for each in standing if each["level"] in _STEPS]
    if per == "conversation" and not steps:
        raise UserError("no result is about a step of a conversation (level trace or turn)")
    about = steps if per == "conversation" else standing
    key = _chosen(metric, {f"{each['level']}.{each['metric']}" for each in about})
    of_sessions = {_text(each.get("session_id")): case for each in standing if (case := _case(each))}
    of_sessions.pop("", None)
    held = [each for each in standing if f"{each['level']}.{each['metric']}" == key]
    cases = [_case(each) or of_sessions.get(_text(each.get("session_id"))) for each in held]
    if per is None:
        per = "case" if any(cases) else "conversation"
    found = _by_case(zip(held, cases, strict=True)) if per == "case" else _by_conversation(held)
    if not found:
        nor = "" if per == "case" else ", nor is it about a step of a conversation"
        cure = "count by conversation (--per conversation)" if per == "case" else "send session ids"
        raise UserError(
            f"no result of {key} belongs to a case{nor}: run each attempt within using_case(case, trial), or {cure}"
        )
    return CaseTrials(key, per, tuple(found[name] for name in sorted(found)))


def _standing(results: Iterable[Mapping[str, Any]]) -> Collection[Mapping[str, Any]]:
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for each in results:
        about = _about(each)
        ids = () if each.get("level") == "session" else ("trace_id", "span_id")
        unit = (
            *(_text(each.get(key)) for key in ("level", "metric", "session_id", *ids)),
            *(_text(about.get(key)) for key in ("case", "trial", "k")),
        )
        known = found.get(unit)
        if known is None or (each.get("revision") or 0) >= (known.get("revision") or 0):
            found[unit] = each
    return found.values()


def _chosen(asked: str | None, there: set[str]) -> str:
    if asked is None:
        if TRIAL_CORRECT in there:
            return TRIAL_CORRECT
        if len(there) == 1:
            return there.pop()
        raise UserError(f"choose the metric that decides success: --metric with one of {', '.join(sorted(there))}")
    fitting = sorted(key for key in there if asked in (key, key.partition(".")[2]))
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UserError(f"{asked} can be {' or '.join(fitting)}: also write the level")
    raise UserError(f"the input has no result of {asked} that can be a trial; it has {', '.join(sorted(there))}")


def _case(result: Mapping[str, Any]) -> tuple[str, str, str] | None:
    about = _about(result)
    if not about.get("case"):
        return None
    return _text(about["case"]), _text(about.get("trial")), _text(about.get("case_kind"))


def _by_case(results: Iterable[tuple[Mapping[str, Any], tuple[str, str, str] | None]]) -> dict[str, CaseOutcomes]:
    parts: defaultdict[str, defaultdict[Trial, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    found: dict[str, CaseOutcomes] = {}
    for each, named in results:
        if named is None:
            continue
        name, trial, kind = named
        case = found.setdefault(name, CaseOutcomes(name))
        case.kind = kind or case.kind
        case.agents.add(_text(each.get("agent")))
        if (score := each.get("score")) is not None:
            case.scores.append(score)
        place = _text(each.get("session_id")) or ("" if trial else _text(each.get("trace_id")))
        if each["level"] == "trial":  # each of these is about a whole trial
            place = f"{place}\t{_text(each.get('trace_id'))}"
        parts[name][trial, place].append(each)
    for name, held in parts.items():
        found[name].trials = {trial: _passed(several) for trial, several in held.items()}
    return found


def _by_conversation(results: Iterable[Mapping[str, Any]]) -> dict[str, CaseOutcomes]:
    found: dict[str, CaseOutcomes] = {}
    for each in results:
        session = _text(each.get("session_id"))
        if session and each["level"] in _STEPS:
            case = found.setdefault(session, CaseOutcomes(session))
            case.agents.add(_text(each.get("agent")))
            case.trials[_text(each.get("trace_id")), _text(each.get("span_id"))] = _passed([each])
    return found


def _passed(results: Iterable[Mapping[str, Any]]) -> bool | None:
    outcomes = [each.get("success") if each["outcome"] == "scored" else each["outcome"] for each in results]
    if False in outcomes:
        return False
    if True not in outcomes or "unscored" in outcomes or None in outcomes:
        return None
    return True


def _about(result: Mapping[str, Any]) -> Mapping[str, Any]:
    about = result.get("metadata")
    return about if isinstance(about, Mapping) else {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)

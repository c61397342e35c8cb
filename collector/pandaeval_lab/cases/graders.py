"""Lists all graders, and the graders of a case."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.score import Finding
from pandaeval_collector.config import closest
from pandaeval_collector.scoring.metric import JudgedTrialMetric, TraceMetric, TrialMetric
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cases.mocks import Mocks
from pandaeval_lab.cases.model import AbsentFinding, Case, Suite
from pandaeval_lab.cases.trial import Trial, TrialContext, finding, function, source_of

CORRECT = "trial_correct"
SEPARATOR = ":"
Grader = TrialMetric | JudgedTrialMetric
Place = tuple[str | int, ...]
"""Keys and positions that lead to a value of a case file."""
CaseFault = tuple[Place, str]
"""The place of a fault, and its text."""
_MOST = 5
_LEAST_FAILURES = 20
"""Minimum of the source, Agent Evaluation Framework."""


def suite_warnings(suite: Suite) -> Iterator[str]:
    """Yield a sentence for each probable mistake in a suite."""
    idle = [case.id for case in suite.cases if not declared_graders(case) and not case.open]
    if idle:
        yield (
            f"cases without an expectation ({short_list(idle)}): their trials neither pass nor fail; add one, such as "
            "expected_tools, expected_outcome or expected_answer"
        )
    failures = sum(bool(case.recorded or case.absent) for case in suite.cases)
    if 0 < failures < _LEAST_FAILURES:
        yield (
            f"only {failures} of the cases come from recorded runs; for a regression suite, collect at least "
            f"{_LEAST_FAILURES} recorded failures"
        )
    same: dict[str, list[str]] = {}
    for case in suite.cases:
        if case.task is not None:
            same.setdefault(case.task, []).append(case.id)
    for ids in [ids for ids in same.values() if len(ids) > 1][:_MOST]:
        yield f"{short_list(ids)} have the same inputs.task: the spans must name the case (using_case, or `cases run`)"


def mock_warnings(suite: Suite) -> Iterator[str]:
    """Yield a sentence for each case whose mocks refuse expected calls."""
    for case in (case for case in suite.cases if case.is_mocked and case.unmocked != "pass"):
        mocks, talk = Mocks(case), (call for each in case.interactions for call in each.expected_tools or ())
        expected = dict.fromkeys(c.tool_name for c in (*(case.expected or ()), *talk) if not mocks.has(c))
        if expected:
            yield f"{case.id}: no mock fits the expected calls of {short_list([*expected])}; add their results to mocks"


def short_list(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_MOST]) + (", …" if len(ids) > _MOST else "")


def known_graders(modules: tuple[str, ...]) -> list[Grader]:
    """Return all metrics of level trial, with those of ``modules``."""
    return [metric for metric in registry((GRADERS, *modules)).values() if isinstance(metric, Grader)]


def rule_of(absent: AbsentFinding) -> TraceMetric | None:
    """Return the trace metric by code that reports a finding; ``None`` if a judge reports it."""
    found = registry().get(absent.metric)
    return found if isinstance(found, TraceMetric) and found.kind == "code" else None


def declared_graders(case: Case) -> tuple[str, ...]:
    demands = (
        ("end_state", bool(case.end_state)),
        ("finding_absent", any(rule_of(absent) is not None for absent in case.absent)),
        ("failure_absent", any(rule_of(absent) is None for absent in case.absent)),
        ("exit_code", case.exit_code is not None),
        ("output_format", case.output_format is not None),
        ("required_order", bool(case.required_order)),
        ("forbidden_tools", bool(case.forbidden_tools)),
        ("answer_correctness", case.expected_answer is not None),
        ("conversation_correctness", bool(case.interactions)),
        ("tool_correctness", case.expected is not None),
    )
    return tuple(dict.fromkeys((*(name for name, is_said in demands if is_said), *case.graders)))


def reads_answers(case: Case) -> bool:
    """Return whether a grader of the case needs no tool calls."""
    of_calls = {"tool_correctness", "required_order", "forbidden_tools", "finding_absent", "failure_absent"}
    if any(each.expected_tools is not None for each in case.interactions):
        of_calls.add("conversation_correctness")
    if case.end_state_from is None:
        of_calls.add("end_state")
    return not of_calls.issuperset(declared_graders(case))


def complete(suite: Suite, known: Collection[str]) -> tuple[Suite, list[CaseFault]]:
    """Write out functions that ``graders`` name by a bare name. Returns the suite and its faults."""
    faults: list[CaseFault] = []
    cases: list[Case] = []
    positions: dict[str, int] = {}
    for at, case in enumerate(suite.cases):
        first = positions.setdefault(case.id, at)
        if first != at:
            faults.append(
                (("cases", at, "id"), f"the id {case.id} is also the id of cases[{first}]; rename one of them")
            )
        names = tuple(_written_out(name, suite.graders_from, known) for name in case.graders)
        case = case.model_copy(update={"graders": names})
        faults += [(("cases", at, *place), fault) for place, fault in _case_faults(case, known)]
        if case.agent is not None and case.agent not in suite.agents:
            faults.append((("cases", at, "agent"), f"agents has no {case.agent}; it has {short_list([*suite.agents])}"))
        cases.append(case)
    return suite.model_copy(update={"cases": tuple(cases)}), faults


def _written_out(name: str, module: str | None, known: Collection[str]) -> str:
    if module is None or SEPARATOR in name or name in known:
        return name
    return f"{module}{SEPARATOR}{name}"


def _case_faults(case: Case, known: Collection[str]) -> Iterator[CaseFault]:
    by_short: dict[str, str] = {}
    for index, name in enumerate(case.graders):
        if fault := _grader_fault(name, known):
            yield ("graders", index), fault
        other = by_short.setdefault(short(name), name)
        if other != name:  # the results of the two graders would replace each other
            fault = f"{name}: results of {other} have the same name, {short(name)}; give one another name"
            yield ("graders", index), fault
    for name in sorted(set(case.thresholds) - set(known) - by_short.keys()):
        yield ("thresholds", name), _unknown(name, known)
    for place, name in _functions(case):
        if fault := _load_fault(function, name):
            yield place, fault


def _functions(case: Case) -> Iterator[tuple[Place, str]]:
    if case.end_state_from is not None:
        yield ("end_state_from",), case.end_state_from
    for tool, mocks in case.mocks.items():
        for index, mock in enumerate(mocks):
            if mock.function is not None:
                yield ("mocks", tool, index, "function"), mock.function


def short(name: str) -> str:
    if SEPARATOR in name:
        return name.rpartition(SEPARATOR)[2].lower()
    return name


def custom(cases: Iterable[Case]) -> dict[str, Grader]:
    names = dict.fromkeys(name for case in cases for name in case.graders if SEPARATOR in name)
    return {name: _metric(name) for name in names}


def _metric(name: str) -> Grader:
    def evaluate(trial: Trial, context: TrialContext) -> Finding | None:
        return finding(function(name)(trial))

    layer: Any = getattr(function(name), "layer", "outcome")
    of = {"of": name, "source": source_of(name)}  # a changed function gives a different result
    return TrialMetric(
        name=short(name),
        version="1",
        threshold=0.5,
        question="?",
        needs="-",
        evaluate=evaluate,
        settings=of,
        layer=layer,
    )


def _grader_fault(name: str, known: Collection[str]) -> str:
    if SEPARATOR not in name:
        if name in known and name != CORRECT:
            return ""
        return _unknown(name, known)
    fault = _load_fault(_metric, name)
    if not fault and short(name) in known:
        return f"{name}: there is a grader {short(name)} already; give the function another name"
    return fault


def _load_fault(load: Callable[[str], object], name: str) -> str:
    try:
        load(name)
    except ModuleLoadError as error:
        return str(error)
    except ValueError as error:
        return f"{name}: {error}"
    return ""


def _unknown(name: str, known: Collection[Any]) -> str:
    meant = closest(name, sorted(set(known) - {CORRECT}))
    cure = f"did you mean {meant}?" if meant else "`pandaeval metrics` lists the graders (level trial)."
    return f"there is no grader {name}; {cure} For your own function, write module:function"

"""Which graders there are, and which of them a case declares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.score import Finding
from pandaeval_collector.config import Config, MetricsSection, check_metrics
from pandaeval_collector.scoring.metric import JudgedTrialMetric, TrialMetric, ends
from pandaeval_collector.scoring.registry import GRADERS, registry
from pandaeval_lab.cases.mocks import Mocks, plain_function
from pandaeval_lab.cases.model import Case, Suite
from pandaeval_lab.cases.trial import Trial, TrialContext, finding, function, source_of

# What is allowed in a case file and is hardly meant.
_MOST = 5


def doubts(suite: Suite) -> Iterator[str]:
    """Yields a sentence with the cure for everything in a suite that is hardly meant."""
    held = {case.id for case in suite.cases if case.scenario and case.scenario.thresholds}
    idle = [case.id for case in suite.cases if not declared(case) and not case.open and case.id not in held]
    if idle:
        several = "1 case is" if len(idle) == 1 else f"{len(idle)} cases are"
        yield (
            f"{several} without anything that a run could fail ({some(idle)}): no trial is decided before there "
            "is an expectation, such as expected_tools, expected_outcome or expected_answer"
        )
    same: dict[str, list[str]] = {}
    for case in suite.cases:
        if case.task is not None:
            same.setdefault(case.task, []).append(case.id)
    for ids in [ids for ids in same.values() if len(ids) > 1][:_MOST]:
        yield f"{some(ids)} have the same inputs.task: spans have to name the case (using_case; `cases run` does it)"


def unanswered(suite: Suite) -> Iterator[str]:
    """Yields a sentence for each case with mocks that expects calls which ``pandaeval cases run`` will refuse."""
    for case in (case for case in suite.cases if case.is_mocked and case.unmocked != "pass"):
        mocks, talk = Mocks(case), (call for each in case.interactions for call in each.expected_tools or ())
        expected = dict.fromkeys(c.tool_name for c in (*(case.expected or ()), *talk) if not mocks.has(c))
        if expected:
            yield f"{case.id}: no mock fits the expected calls of {some([*expected])}: say in mocks what they get"


def some(ids: Sequence[str]) -> str:
    """Returns the first of some names, in words."""
    return ", ".join(ids[:_MOST]) + (", …" if len(ids) > _MOST else "")


CORRECT = "trial_correct"
Grader = TrialMetric | JudgedTrialMetric
SEPARATOR = ":"


def known_graders(modules: tuple[str, ...]) -> list[Grader]:
    """Returns all metrics of level trial: ours, those of installed packages and of the user's own ``modules``."""
    return [metric for metric in registry((GRADERS, *modules)).values() if isinstance(metric, Grader)]


def declared(case: Case) -> tuple[str, ...]:
    """Returns the names of the graders that decide a trial: those of fields that demand something, and those named."""
    demands = (
        ("end_state", bool(case.end_state)),
        ("exit_code", case.exit_code is not None),
        ("output_format", case.output_format is not None),
        ("required_order", bool(case.required_order)),
        ("forbidden_tools", bool(case.forbidden_tools)),
        ("answer_correctness", case.expected_answer is not None),
        ("conversation_correctness", bool(case.interactions)),
        ("tool_correctness", case.expected is not None),
    )
    return tuple(dict.fromkeys((*(name for name, is_said in demands if is_said), *case.graders)))


def out_of_reach(suite: Suite, modules: tuple[str, ...]) -> Iterator[CaseFault]:
    """Yields what is wrong with thresholds of scenarios, which any metric may have. ``modules``: the user's own."""
    if not any(case.scenario and case.scenario.thresholds for case in suite.cases):
        return
    known = registry((GRADERS, *modules))
    scales = {key: ends(metric.scale) for key, metric in known.items() if metric.scale}
    for at, case in enumerate(suite.cases):
        given = {} if case.scenario is None else case.scenario.thresholds
        config = Config(metrics=MetricsSection(thresholds=given))
        for problem in check_metrics(config, ((each.level, each.name) for each in known.values()), scales):
            name = problem.key.removeprefix("metrics.thresholds.")
            yield ("cases", at, "scenario", "thresholds", name), problem.message


CaseFault = tuple[tuple[str | int, ...], str]
"""Where something is wrong, and what."""


def complete(suite: Suite, known: Collection[str]) -> tuple[Suite, list[CaseFault]]:
    """Writes out each function that ``graders`` name by a bare name; returns the suite, and what is wrong with any
    name. ``known``: names of the metrics of level trial."""
    wrong: list[CaseFault] = []
    cases: list[Case] = []
    ids: dict[str, int] = {}
    for at, case in enumerate(suite.cases):
        first = ids.setdefault(case.id, at)
        if first != at:
            fault = f"the id {case.id} is that of cases[{first}] already; rename one"
            wrong.append((("cases", at, "id"), fault))
        names = case.graders
        if suite.graders_from is not None:
            bare = {name for name in names if SEPARATOR not in name and name not in known}
            names = tuple(f"{suite.graders_from}{SEPARATOR}{name}" if name in bare else name for name in names)
        by_short: dict[str, str] = {}
        for index, name in enumerate(names):
            wrong += [(("cases", at, "graders", index), fault) for fault in _faults(name, known)]
            other = by_short.setdefault(short(name), name)
            if other != name:  # one would hide the other
                fault = f"{name}: results of {other} have the same name, {short(name)}; give one another name"
                wrong.append((("cases", at, "graders", index), fault))
        unknown = set(case.thresholds) - set(known) - {short(name) for name in names}
        wrong += [(("cases", at, "thresholds", name), _unknown(name, known)) for name in sorted(unknown)]
        if case.end_state_from is not None:
            wrong += [(("cases", at, "end_state_from"), fault) for fault in _making(function, case.end_state_from)]
        for tool, several in case.mocks.items():
            for index, mock in enumerate(several):
                faults = () if mock.function is None else _making(plain_function, mock.function)
                wrong += [(("cases", at, "mocks", tool, index, "function"), fault) for fault in faults]
        cases.append(case.model_copy(update={"graders": names}))
    return suite.model_copy(update={"cases": tuple(cases)}), wrong


def short(name: str) -> str:
    """Returns the metric name of a grader's results: for a function its own name."""
    return name.rpartition(SEPARATOR)[2].lower() if SEPARATOR in name else name


def custom(cases: Iterable[Case]) -> dict[str, Grader]:
    """Makes metrics of the user's functions that cases name, by the name that the cases use."""
    names = dict.fromkeys(name for case in cases for name in case.graders if SEPARATOR in name)
    return {name: _metric(name) for name in names}


def _metric(name: str) -> Grader:
    def evaluate(trial: Trial, context: TrialContext) -> Finding | None:
        return finding(function(name)(trial))

    layer: Any = getattr(function(name), "layer", "outcome")
    of = {"of": name, "source": source_of(name)}  # what else a function could say is another result
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


def _faults(name: str, known: Collection[str]) -> Iterator[str]:
    if SEPARATOR in name:
        yield from _making(_metric, name)
        if short(name) in known:
            yield f"{name}: there is a grader {short(name)} already; give the function another name"
    elif name not in known or name == CORRECT:
        yield _unknown(name, known)


def _making(make: Callable[[str], object], name: str) -> Iterator[str]:
    """Yields why nothing can be made of a function: it cannot be loaded, or its name or layer is wrong."""
    try:
        make(name)
    except ModuleLoadError as error:
        yield str(error)
    except ValueError as error:
        yield f"{name}: {error}"


def _unknown(name: str, known: Collection[Any]) -> str:
    meant = get_close_matches(name, sorted(set(known) - {CORRECT}), 1)
    cure = f"did you mean {meant[0]}?" if meant else "`pandaeval metrics` lists those of level trial."
    return f"there is no grader {name}; {cure} A function of your own is written module:function"

"""Which step broke a run: how often the right one is named, on human labels and on planted faults.

    python tests/bench/blame.py [--n 4] [--fit] [--weights]

Takes the human labels of ``../shared/data/agentrx-tau`` (27 failed sessions: the step of the root cause) and the copies
of a drill over the sets of ``tests/bench/drill.py`` that a metric notices (the step in which the fault was planted
first). A model is fitted on both together, each counting as much as the other, and tried on tasks that it has not seen
(8 folds, whole tasks). Beside it: a step at random, the first and the last model call, the first failed call.
``--fit`` writes the model in the package, deterministic.
"""

from __future__ import annotations

import argparse
import json
import lzma
import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log1p
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from bench._labelled_runs import _chosen, default_evaluator  # noqa: E402
from bench._table import table  # noqa: E402
from bench.drill import SETS, requests, successful  # noqa: E402
from pandaeval_collector.analysis.rules.blame_steps import BlameStep, steps  # noqa: E402
from pandaeval_collector.analysis.rules.course import course  # noqa: E402
from pandaeval_collector.analysis.stats import blame_model  # noqa: E402
from pandaeval_collector.analysis.stats.blame_model import BlameModel, BlameRun, fitted  # noqa: E402
from pandaeval_collector.analysis.stats.problem_model import share  # noqa: E402
from pandaeval_collector.base.result import Result  # noqa: E402
from pandaeval_collector.config import Config  # noqa: E402
from pandaeval_collector.drill.drill import Drill  # noqa: E402
from pandaeval_collector.drill.fault import faults  # noqa: E402
from pandaeval_collector.runs.filerun import FileRun  # noqa: E402
from pandaeval_collector.runs.settings import close_rules  # noqa: E402
from pandaeval_otel.model import Kind, Trace  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
FOLDS = 8
PENALTY = 3.0
SURE = 0.6
"""From here on more than six of ten named steps are right, on either side, in cross-validation."""
MODEL = Path(blame_model.__file__).with_name(blame_model.SHIPPED)
SOURCE = (
    "{} human labels (AgentRx, MIT) and {} noticed copies of a drill over public runs, each counting as much as the "
    "other: python tests/bench/blame.py --fit"
)


@dataclass(slots=True)
class Case:
    """A broken run. ``source``: whose word says which step broke it; ``traces``: where each of its steps stands."""

    source: str
    task: str
    steps: list[BlameStep]
    broke: frozenset[int]
    traces: list[str]
    fault: str = ""

    def run(self, weight: float = 1.0) -> BlameRun:
        return BlameRun([step.features for step in self.steps], self.broke, weight)


def named(results: Sequence[Result]) -> dict[str, tuple[str, ...]]:
    return {r.metric: r.finding.span_ids for r in results if r.success is False and getattr(r.finding, "span_ids", ())}


@dataclass(slots=True)
class Told:
    """A trace with what failing metrics name, and with the fault that was planted in it."""

    trace: Trace
    named: Mapping[str, tuple[str, ...]]
    group: str = ""
    fault: str = ""
    touched: frozenset[str] = frozenset()


def labelled() -> tuple[dict[str, list[Told]], dict[str, set[str]]]:
    """The sessions with a human label, and the spans of their root causes."""
    folder = SHARED / "agentrx-tau"
    wanted: dict[str, set[str]] = defaultdict(set)
    with lzma.open(folder / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["name"] == "failure" and row["root_cause"]:
                wanted[row["session_id"]].add(row["span_id"])
    traces: dict[str, Trace] = {}
    results = defaultdict(list)
    with FileRun(default_evaluator()) as run:
        for request in _chosen(folder / "traces.jsonl.xz", None):
            run.add(request)
        for result in run.results(lambda decision: traces.update((each.trace_id, each) for each in decision.traces)):
            if result.unit.level == "trace":
                results[result.unit.trace_id].append(result)
    sessions: dict[str, list[Told]] = defaultdict(list)
    for trace in sorted(traces.values(), key=lambda trace: (trace.start_ns, trace.trace_id)):
        if trace.session_id in wanted:
            sessions[trace.session_id].append(Told(trace, named(results[trace.trace_id])))
    return dict(sessions), dict(wanted)


def of_people(sessions: Mapping[str, Sequence[Told]], wanted: Mapping[str, set[str]]) -> list[Case]:
    """Whole sessions as broken runs."""
    cases = []
    for session, its in sorted(sessions.items()):
        found, places = [], []
        for told, more in zip(its, in_session([each.trace for each in its]), strict=True):
            for step in steps(told.trace, told.named):
                step.features.update(more)
                if step.kind == "request":
                    step.features.update({f"request: {name}": value for name, value in more.items()})
                found.append(step)
                places.append(told.trace.trace_id)
        broke = frozenset(at for at, step in enumerate(found) if step.span_id in wanted[session])
        cases.append(Case("people", session.removeprefix("agentrx-tau-"), found, broke, places))
    return cases


def in_session(traces: Sequence[Trace]) -> list[dict[str, float]]:
    """What speaks for the traces of a session as wholes."""
    courses = [course(trace) for trace in traces]
    changed = [at for at, each in enumerate(courses) if each.to_change]
    found = []
    for at, each in enumerate(courses):
        after = courses[at + 1] if at + 1 < len(courses) else None
        found.append(
            {
                "session: place": at / max(1, len(courses) - 1),
                "session: first trace": float(at == 0),
                "session: last trace": float(after is None),
                "session: first change": float(changed[:1] == [at]),
                "session: last change": float(changed[-1:] == [at]),
                "session: a change": float(each.to_change > 0),
                "session: a call fails": float(each.failed > 0),
                "session: calls": log1p(each.calls),
                "session: user corrects then": float(after is not None and after.corrections > 0),
                "session: user thanks then": float(after is not None and after.thanks > 0),
                "session: change follows": float(after is not None and after.to_change > 0),
                "session: asks": float(each.asks),
            }
        )
    return found


def planted(name: str, most: int) -> list[Told]:
    """The copies that a metric notices."""
    good = successful(name)
    scorer, rules = default_evaluator(), close_rules(Config())
    with Drill(
        lambda where: FileRun(scorer, rules, where=where),
        {key: fault for key, fault in faults().items() if fault.family != "telemetry"},
        most,
        good=lambda trace_id, session: good is None or session in good,
        keep=most,
    ) as drill:
        for request in requests(name):
            drill.add(request)
        drill.run()
        return [
            Told(copy.planted.trace, named(copy.results), name, copy.fault, copy.planted.span_ids)
            for copies in drill.kept.values()
            for copy in copies
            if copy.noticed
        ]


def of_drill(told: Told) -> Case | None:
    """One noticed copy as a broken run; ``None`` where the fault is in no step, or in the only one."""
    trace = told.trace
    found = steps(trace, told.named)
    broke = origin(told)
    at = frozenset(at for at, step in enumerate(found) if step.span_id in broke)
    if not at or len(at) == len(found):
        return None
    session = (trace.session_id or trace.trace_id).replace("-trial", " trial").split(" trial")[0]
    task = session.removeprefix("agentrx-tau-") if told.group == "agentrx-tau" else f"{told.group} {session}"
    return Case("drill", task, found, at, [trace.trace_id] * len(found), told.fault)


def origin(told: Told) -> set[str]:
    """The spans in which a fault was planted first: a model's call with the tool calls that it asked for is one."""
    leaves = [s for s in told.trace.spans if s.span_id in told.touched and s.kind in (Kind.LLM, Kind.TOOL)]
    if not leaves:
        return {*told.touched}
    first = leaves[0]
    found = {first.span_id}
    if first.kind is Kind.LLM and len(leaves) > 1 and leaves[1].kind is Kind.TOOL:
        found.add(leaves[1].span_id)
    return found


def together(cases: Sequence[Case]) -> list[BlameRun]:
    """Runs for a fit in which people's labels and the drill's count the same."""
    count = {source: sum(case.source == source for case in cases) for source in ("people", "drill")}
    least = min(count.values())
    return [case.run(least / count[case.source] if count[case.source] else 1.0) for case in cases]


def folds(cases: Sequence[Case]) -> list[int]:
    """Whole tasks, drawn."""
    tasks = sorted({case.task for case in cases})
    Random(20).shuffle(tasks)
    fold = {task: at % FOLDS for at, task in enumerate(tasks)}
    return [fold[case.task] for case in cases]


def unseen(cases: Sequence[Case], fit: Callable[[Sequence[Case]], BlameModel]) -> list[list[float]]:
    """Probabilities of each case's steps by a model that has not seen its task."""
    found: list[list[float]] = [[] for _ in cases]
    its = folds(cases)
    for fold in range(FOLDS):
        model = fit([case for case, of in zip(cases, its, strict=True) if of != fold])
        for at, case in enumerate(cases):
            if its[at] == fold:
                found[at] = model.probabilities([step.features for step in case.steps])
    return found


def fit(cases: Sequence[Case]) -> BlameModel:
    return fitted(together(cases), PENALTY)


def one_trace(case: Case) -> Case:
    """The trace that holds the breaking step alone, without what its session tells."""
    trace = case.traces[min(case.broke)]
    kept = [at for at, of in enumerate(case.traces) if of == trace]
    broke = frozenset(at for at, of in enumerate(kept) if of in case.broke)
    steps_ = [
        replace(step, features={name: value for name, value in step.features.items() if "session: " not in name})
        for step in (case.steps[at] for at in kept)
    ]
    return replace(case, steps=steps_, traces=[trace] * len(kept), broke=broke)


def of(cases: Sequence[Case], chances: Sequence[list[float]], source: str) -> tuple[list[Case], list[list[float]]]:
    """The cases of one source with their probabilities."""
    kept = [at for at, case in enumerate(cases) if case.source == source]
    return [cases[at] for at in kept], [chances[at] for at in kept]


def hit(case: Case, chance: Sequence[float], most: int) -> float:
    """Whether a breaking step is among the first ones; of equal steps each has the same chance."""
    order = sorted(range(len(chance)), key=lambda at: -chance[at])
    edge = chance[order[min(most, len(order)) - 1]]
    above = [at for at in order if chance[at] > edge]
    if case.broke & {*above}:
        return 1.0
    equal = [at for at in order if chance[at] == edge]
    room, right = most - len(above), len(case.broke & {*equal})
    miss = 1.0
    for draw in range(min(room, len(equal))):
        miss *= max(0, len(equal) - right - draw) / (len(equal) - draw)
    return 1.0 - miss


BASELINES: Mapping[str, Callable[[Case], list[float]]] = {
    "a step at random": lambda case: [1.0] * len(case.steps),
    "the first model call": lambda case: _only(case, "llm", first=True),
    "the last model call": lambda case: _only(case, "llm", first=False),
    "the first failed call, else the last model call": lambda case: _failed(case),
}


def _only(case: Case, kind: str, first: bool) -> list[float]:
    at = [at for at, step in enumerate(case.steps) if step.kind == kind]
    order = at if first else at[::-1]
    return [1.0 / (1 + order.index(each)) if each in order else 0.0 for each in range(len(case.steps))]


def _failed(case: Case) -> list[float]:
    found = _only(case, "llm", first=False)
    wrong = [at for at, step in enumerate(case.steps) if {"asked: fails", "fails"} & step.features.keys()]
    for place, at in enumerate(wrong):
        found[at] = 3.0 - place / 1000
    return found


def figures(cases: Sequence[Case], chances: Sequence[Sequence[float]]) -> tuple[str, str, str]:
    exact = [hit(case, chance, 1) for case, chance in zip(cases, chances, strict=True)]
    three = [hit(case, chance, 3) for case, chance in zip(cases, chances, strict=True)]
    low, high = share(round(sum(exact)), len(exact)).low, share(round(sum(exact)), len(exact)).high
    return (f"{sum(exact) / len(exact):.3f}", f"{low:.2f} … {high:.2f}", f"{sum(three) / len(three):.3f}")


def sure_at(cases: Sequence[Case], chances: Sequence[Sequence[float]], threshold: float) -> tuple[float, float]:
    """Precision and recall of naming the first step from a probability on."""
    named = [(case, chance) for case, chance in zip(cases, chances, strict=True) if max(chance) >= threshold]
    right = sum(hit(case, chance, 1) for case, chance in named)
    return (right / len(named) if named else float("nan"), right / len(cases))


def kept(folder: Path | None, name: str, make: Callable[[], Any]) -> Any:
    """What was read before, from a folder for those who try features."""
    file = folder / f"{name}.pickle" if folder else None
    if file is not None and file.exists():
        return pickle.loads(file.read_bytes())
    made = make()
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps(made))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=4, help="copies of each fault and set")
    parser.add_argument("--set", nargs="*", default=list(SETS), choices=SETS, help="of the drill")
    parser.add_argument("--fit", action="store_true", help="write the model in the package")
    parser.add_argument("--weights", action="store_true", help="print what the features weigh")
    parser.add_argument("--cache", type=Path)
    asked = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"{SHARED} is not there: the labelled runs are not part of this repository")
    cases = of_people(*kept(asked.cache, "people", labelled))
    for name in asked.set:
        copies = kept(asked.cache, f"{name}-{asked.n}", lambda name=name: planted(name, asked.n))
        cases += [case for told in copies if (case := of_drill(told)) is not None]
    alone = [one_trace(case) if case.source == "people" else case for case in cases]
    rows, sure = [], []
    chances = unseen(alone, fit)
    whole = unseen(cases, fit)
    for name, its, told in (
        ("people's label, within its trace", *of(alone, chances, "people")),
        ("planted and noticed, within its trace", *of(alone, chances, "drill")),
        ("people's label, in the whole session", *of(cases, whole, "people")),
    ):
        size = sum(len(case.steps) for case in its) / len(its)
        for way, found in {"model": told, **{k: [f(c) for c in its] for k, f in BASELINES.items()}}.items():
            rows.append([name, f"{len(its)}", f"{size:.0f}", way, *figures(its, found)])
        for at in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            precision, recall = sure_at(its, told, at)
            sure.append([name, f"{at:.1f}", f"{precision:.2f}", f"{recall:.2f}"])
    print(table("The step that broke a run", ["runs", "n", "steps", "by", "exact", "95 %", "top 3"], rows))
    print(table("Named only from a probability on", ["runs", "from", "precision", "recall"], sure))
    counts = (sum(case.source == source for case in alone) for source in ("people", "drill"))
    model = replace(fit(alone), sure=SURE, source=SOURCE.format(*counts))
    if asked.weights:
        for weight, name in sorted(zip(model.weights, model.names, strict=True), key=lambda x: -abs(x[0])):
            print(f"{weight:+.2f} {name}")
    if asked.fit:
        MODEL.write_text(model.to_json())
        print(f"{MODEL.relative_to(ROOT)}: version {model.version}")


if __name__ == "__main__":
    main()

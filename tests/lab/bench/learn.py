"""What a problem score learns from an application's own labels.

    python tests/lab/bench/learn.py [--only SET ...] [--draws 40] [--shuffles 200] [--json]

Takes the labelled sessions of ``../shared/data`` and prints, for each set: how well a model fitted on 40, on 120 and on
all labels tells bad sessions that it had not seen (AUROC, and the same among sessions of equal length; for all labels
with the interval that the product shows); its calibration error; and how often nothing is learned where labels are
shuffled. Sessions of one task are never on both sides. 40 and 120 labels: means over draws of whole tasks.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from rich.console import Console  # noqa: E402

from lab.bench._labelled_runs import _chosen, default_evaluator  # noqa: E402
from lab.bench._table import table  # noqa: E402
from pandaeval_collector.analysis.rules.course import course  # noqa: E402
from pandaeval_collector.analysis.stats.problem_features import RULES, session_features  # noqa: E402
from pandaeval_collector.cli._output import progress  # noqa: E402
from pandaeval_collector.runs.replay import replay  # noqa: E402
from pandaeval_lab.labels.learning import auroc, auroc_within, fitted, learn, thirds  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
SETS = ("tau-bench", "tau2-pairs", "agentrx-tau")


@dataclass(slots=True)
class Labelled:
    """Sessions of one set: features, whether they went wrong, and their tasks."""

    rows: list[dict[str, float]]
    bad: list[bool]
    tasks: list[str]


def labelled(name: str) -> Labelled:
    """All sessions of a set that have a label."""
    good, tasks = {}, {}
    with lzma.open(SHARED / name / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["name"] == "task_success":
                good[row["session_id"]], tasks[row["session_id"]] = bool(row["value"]), str(row.get("task_id"))
    traces, scores = {}, {}
    with TraceFiles() as run:
        for request in _chosen(SHARED / name / "traces.jsonl.xz", None):
            run.add(request)
        for result in replay(
            run,
            default_evaluator(),
            on_decided=lambda decision: traces.update((each.trace_id, each) for each in decision.traces),
        ):
            if result.outcome == "scored" and result.unit.level == "trace" and result.metric in RULES:
                scores.setdefault(result.unit.trace_id, {})[result.metric] = result.score
    sessions = {}
    for trace in sorted(traces.values(), key=lambda trace: (trace.start_ns, trace.trace_id)):
        if trace.session_id in good:
            sessions.setdefault(trace.session_id, []).append(trace)
    found = Labelled([], [], [])
    for session, its in sessions.items():
        found.rows.append(session_features([course(each) for each in its], [scores.get(t.trace_id, {}) for t in its]))
        found.bad.append(not good[session])
        found.tasks.append(f"{its[-1].agent} {tasks[session]}")
    return found


def with_few(sample: Labelled, labels: int, draws: int, told) -> tuple[float, float] | None:
    """Mean AUROC on unseen sessions, and the same at equal length, of models fitted on so many labels."""
    if labels > 0.75 * len(sample.rows):
        return None
    whole, equal, draw = [], [], np.random.default_rng(20)
    names = sorted(set(sample.tasks))
    for at in range(draws):
        seen: list[int] = []
        touched: set[str] = set()
        for name in draw.permutation(names):
            if len(seen) >= labels:
                break
            touched.add(name)
            seen += [i for i, task in enumerate(sample.tasks) if task == name][: labels - len(seen)]
        rest = [i for i, task in enumerate(sample.tasks) if task not in touched]
        if len({sample.bad[i] for i in seen}) == len({sample.bad[i] for i in rest}) == 2:
            bad = np.asarray([sample.bad[i] for i in seen], dtype=np.float64)
            p = fitted([sample.rows[i] for i in seen], bad, [sample.tasks[i] for i in seen], 0)
            values = [(-p.score(sample.rows[i]), sample.bad[i], sample.rows[i]["spans"]) for i in rest]
            whole.append(auroc(*split(values)).value)
            strata = thirds([spans for *_, spans in values])
            equal.append(
                auroc_within(
                    [split([v for v, s in zip(values, strata, strict=True) if s == k]) for k in range(3)]
                ).value
            )
        told(at + 1, draws)
    return float(np.nanmean(whole)), float(np.nanmean(equal))


def split(values: Sequence[tuple[float, bool, float]]) -> tuple[list[float], list[float]]:
    return [v for v, bad, _ in values if not bad], [v for v, bad, _ in values if bad]


def refused(sample: Labelled, times: int, told) -> int:
    """How often of so many times nothing is learned, with labels shuffled."""
    count, draw = 0, np.random.default_rng(20)
    for at in range(times):
        bad = [sample.bad[i] for i in draw.permutation(len(sample.bad))]
        count += bool(learn(sample.rows, bad, sample.tasks, seed=at)[1].refusal)
        told(at + 1, times)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", default=[], choices=SETS, help="a set; may be repeated")
    parser.add_argument("--draws", type=int, default=40, help="of 40 and of 120 labels")
    parser.add_argument("--shuffles", type=int, default=200, help="of the labels of each set")
    parser.add_argument("--json", action="store_true", help="one JSON object a set")
    asked = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"{SHARED} is not there: the labelled runs are not part of this repository")
    rows = []
    for name in asked.only or SETS:
        sample = labelled(name)
        with progress(Console(stderr=True), name) as told:
            few = [with_few(sample, labels, asked.draws, told) for labels in (40, 120)]
            _, evidence = learn(sample.rows, sample.bad, sample.tasks)
            shuffled = refused(sample, asked.shuffles, told)
        one = {
            "set": name,
            "good / bad": f"{sum(not each for each in sample.bad)} / {sum(sample.bad)}",
            **{
                f"{n} labels": "–" if f is None else f"{f[0]:.2f}, {f[1]:.2f}"
                for n, f in zip((40, 120), few, strict=True)
            },
            "all labels": str(evidence.auroc),
            "at equal length": str(evidence.same_length),
            "length alone": f"{evidence.baseline:.2f}",
            "calibration error": f"{evidence.calibration_error:.3f}",
            "refused, shuffled": f"{shuffled} of {asked.shuffles}",
            "verdict": evidence.refusal or "learned",
        }
        if asked.json:
            print(json.dumps(one), flush=True)
        rows.append(list(one.values()))
        head = list(one)
    if not asked.json and not asked.active:
        print(table("A problem score of one's own labels", head, rows))


if __name__ == "__main__":
    main()

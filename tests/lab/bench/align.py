"""Tests whether ``pandaeval judge align`` adopts useful guidelines and rejects useless guidelines.

    python tests/lab/bench/align.py [--trials 200] [--judge]

Resamples scores of ``../shared/data/judge-arena`` and runs the command's procedure without a model. Guidelines:
*useless* changes random verdicts, *idle* fixes and breaks equally many, *stricter* passes from 0.9, *mending* fixes
errors. *Proven* is the share adopted. ``--judge`` runs the command on a refund desk with a scripted judge.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab.bench._table import table  # noqa: E402
from lab.bench.corrected_rates import PASSING, policies  # noqa: E402
from pandaeval_lab.alignment.align import JudgedUnit, LabelledRun, align  # noqa: E402

RUNS = 240
USELESS = ("useless 0.1", "useless 0.4", "idle 0.1", "idle 0.2", "idle 0.4", "idle 0.8")
MENDING = ("stricter", "mending 0.1", "mending 0.2", "mending 0.4")


class ArenaJudge:
    """A trial's runs, with a candidate judge."""

    def __init__(self, seed: int) -> None:
        base = policies()["base"].labelled
        self._draw = np.random.default_rng(seed)
        at = self._draw.integers(0, len(base.judge), RUNS)
        self.judge, self.passed = base.judge[at], base.label[at] >= PASSING
        right = (self.judge >= PASSING) == self.passed
        self._errors_per_right = float((~right).sum() / right.sum())
        self.runs = [LabelledRun(str(number), bool(passed)) for number, passed in enumerate(self.passed)]

    def __call__(self, text: str, runs: Sequence[LabelledRun]) -> Mapping[str, JudgedUnit]:
        return {run.unit: JudgedUnit(self._said(text, int(run.unit))) for run in runs}

    def _said(self, text: str, at: int) -> bool:
        now, kind, _, share = bool(self.judge[at] >= PASSING), *text.partition(" ")
        if kind == "stricter":
            return bool(self.judge[at] >= 0.9)
        if kind == "useless" and self._draw.random() < float(share):
            return bool(self._draw.random() < 0.5) if now else not now
        if kind == "idle":
            wrong = now != self.passed[at]
            return not now if self._draw.random() < float(share) * (1.0 if wrong else self._errors_per_right) else now
        if kind == "mending" and self._draw.random() < float(share):
            return bool(self.passed[at])
        return now


def trials(candidates: Sequence[str], number: int) -> float:
    """Return the share of trials with a proven candidate."""
    found = 0
    for seed in range(number):
        judge = ArenaJudge(seed)
        found += align(judge.runs, judge, candidates).proven is not None
    return found / number


def command() -> str:
    from typer.testing import CliRunner

    from pandaeval_collector.cli import app
    from support.judge import JudgeServer
    from support.refunds import flawed, written

    with tempfile.TemporaryDirectory() as folder, JudgeServer(flawed) as server:
        traces, labels = written(Path(folder), 60)
        environ = {"PANDAEVAL_JUDGE__API_BASE": server.url, "OPENAI_API_KEY": "sk-test", "COLUMNS": "200"}
        asked = ["judge", "align", str(labels), str(traces), "--model", "openai/gpt-4o-mini"]
        done = CliRunner().invoke(app, [*asked, "--rulings", str(Path(folder) / "rulings.yaml")], env=environ)
        return f"{done.output}{len(server.requests)} calls"


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--judge", action="store_true")
    given = options.parse_args()
    if given.judge:
        print(command())
        return
    sets = [(each,) for each in (*USELESS, *MENDING)] + [USELESS[2:5], (*USELESS[2:5], "stricter")]
    rows = [(" + ".join(each), f"{trials(each, given.trials):.3f}") for each in sets]
    print(table(f"{given.trials} trials of {RUNS} labels, half to choose by", ("candidates", "proven"), rows))


if __name__ == "__main__":
    main()

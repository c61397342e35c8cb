"""Compares pass@k and pass^k of a labelled set with the published table.

    python tests/lab/bench/passk_tau.py [--data ../shared/data]

Reads the rewards of ``tau-bench`` (50 tasks, 4 trials) as results for ``pandaeval passk``.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pandaeval_lab.passk.attempts import trials
from pandaeval_lab.passk.figures import Figures, figures

DATA = Path(__file__).parents[3].parent / "shared" / "data"
PUBLISHED = {"pass^k": (0.420, 0.273, 0.220, 0.200), "pass@k": (0.420, 0.567, 0.660, 0.720)}


def results(data: Path) -> Iterator[dict[str, Any]]:
    rewards: dict[str, float] = {}
    about: dict[str, dict[str, Any]] = defaultdict(dict)
    with lzma.open(data / "tau-bench" / "labels.jsonl.xz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["name"] == "reward":
                rewards[row["session_id"]] = float(row["value"])
                about[row["session_id"]] = {"case": str(row["task_id"]), "trial": str(row["trial"])}
    for session, reward in rewards.items():
        yield {
            "metric": "trial_correct",
            "level": "trial",
            "outcome": "scored",
            "score": float(reward == 1.0),
            "success": reward == 1.0,
            "session_id": session,
            "metadata": about[session],
        }


def of_tau(data: Path = DATA) -> Figures:
    """Return the figures for k from 1 to 4."""
    return figures(trials(results(data)), (1, 2, 3, 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    found = of_tau(parser.parse_args().data)
    print(f"{len(found.trials.cases)} tasks, {sum(case.n for case in found.trials.cases)} trials")
    print("k  pass^k  published  interval          pass@k  published  interval")
    for at, each in enumerate(found.suite):
        for name, estimate in (("pass^k", each.pow), ("pass@k", each.at)):
            lead = f"{each.k}  " if name == "pass^k" else "  "
            assert estimate.value is not None
            between = f"{estimate.ci_low:.3f} to {estimate.ci_high:.3f}"
            print(f"{lead}{estimate.value:.3f}   {PUBLISHED[name][at]:.3f}      {between}", end="")
        print()


if __name__ == "__main__":
    main()

"""Measures how many planted faults the inline metrics detect.

    python tests/lab/bench/drill.py [--n 60] [--set tau-bench …] [--as recorded|history-off|both]
                                [--faults value false_success …] [--json FILE] [--summary]

Uses successful runs of ``../shared/data`` and ``../shared/captures``, as recorded and without history. ``--summary``
prints the table of docs/internals/metric-quality.md (``>
collector/pandaeval_collector/scoring/metrics/planted.md``, then ``cd tests && python -m support.metrics_page``).
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pandaeval_collector.base.result import Result
from pandaeval_collector.config import Config
from pandaeval_collector.pipeline.line.understanding import ScoredTrace
from pandaeval_collector.runs.front import close_rules
from pandaeval_collector.runs.settings import evaluator
from pandaeval_lab.drill.drill import Drill, chosen_faults
from pandaeval_lab.drill.fault import faults
from pandaeval_lab.drill.raw import RawTrace
from pandaeval_lab.drill.tally import NoticedShare, Tally
from pandaeval_lab.replay.files import BadLine, Input, Request
from pandaeval_lab.replay.replay import replay
from pandaeval_lab.replay.trace_files import TraceFiles

sys.path.insert(0, str(Path(__file__).parents[2]))
from support.telemetry_faults import since_the_last_user

SHARED = Path(__file__).parents[4] / "shared"
LABELS = {
    "tau-bench": "task_success",
    "tau2-pairs": "task_success",
    "agentrx-tau": "task_success",
    "mcp-pairs": "chosen",
}
SETS = (*LABELS, "captures")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=60)
    options.add_argument("--set", nargs="*", default=list(SETS), choices=SETS)
    options.add_argument("--as", dest="form", choices=("recorded", "history-off", "both"), default="both")
    options.add_argument("--faults", nargs="*", help="faults or families of faults")
    options.add_argument("--json", type=Path)
    options.add_argument("--summary", action="store_true", help="print the table of what was noticed alone")
    given = options.parse_args()
    tallies: dict[str, Any] = {}
    for form in ("recorded", "history-off") if given.form == "both" else (given.form,):
        for name in given.set:
            started = time.monotonic()
            tally = drilled(name, given.n, form == "history-off", given.faults)
            tallies[f"{name}, {form}"] = tally.to_dict()
            if given.summary:
                continue
            print(f"\n## {name}, {form}: {tally.runs} runs, {tally.good} good, {time.monotonic() - started:.0f} s\n")
            print(table(tally), flush=True)
    if given.json:
        given.json.write_text(json.dumps(tallies, indent=1))
    if given.summary:
        print(f"{matrix(tallies, 'noticed')}\n\n{summary(tallies)}")
        return
    print(f"\nNoticed:\n\n{matrix(tallies, 'noticed')}\n\n{summary(tallies)}")


def drilled(name: str, most: int, history_off: bool, named: list[str] | None) -> Tally:
    settings = Config()
    scorer = evaluator(settings)
    good = successful(name)
    chosen = chosen_faults(named or (["value"] if history_off else None), faults())
    with TraceFiles(close_rules(settings)) as files:
        for request in requests(name):
            files.add(without_history(request) if history_off else request)

        def score(some: TraceFiles, where: Callable[[ScoredTrace], bool] | None) -> Iterator[Result]:
            results = replay(some, scorer, where=where)
            return (each for each in results if good is None or each.unit.session_id in good)

        return Drill(files, score, chosen, most).run()


def successful(name: str) -> set[str] | None:
    """Return the successful sessions, ``None`` without labels."""
    if name not in LABELS:
        return None
    with lzma.open(SHARED / "data" / name / "labels.jsonl.xz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["session_id"] for row in rows if row["name"] == LABELS[name] and row["value"] is True}


def requests(name: str) -> Iterator[Request | BadLine]:
    folder = SHARED / "captures" if name == "captures" else SHARED / "data" / name
    files: Iterable[Path] = sorted(folder.rglob("*.jsonl")) if name == "captures" else [folder / "traces.jsonl.xz"]
    for file in files:
        yield from Input(str(file)).requests()


def without_history(request: Request | BadLine) -> Request | BadLine:
    if isinstance(request, BadLine) or request.logs:
        return request
    raw = RawTrace([(False, request.data)])
    raw.rewrite(since_the_last_user)
    return Request(False, raw.parts()[0][1])


def table(tally: Tally) -> str:
    lines = ["| fault | n | noticed | 95 % | cannot tell | step | by |", "|---|---|---|---|---|---|---|"]
    for name, each in tally.worst_first():
        if each.n:
            low, high = each.noticed.interval or (0.0, 0.0)
            step = "–" if each.blamed.value is None else f"{each.blamed.value:.2f}"
            lines.append(
                f"| {name} | {each.n} | {each.noticed.value:.2f} | {low:.2f} … {high:.2f} | "
                f"{each.could_not_tell.value:.2f} | {step} | {_by(each.by_metric, each.n)} |"
            )
    untouched = "; ".join(f"{metric} {share.hits} of {share.n}" for metric, share in tally.flagged.items())
    missing = ", ".join(name for name, each in tally.worst_first() if not each.n)
    return "\n".join([*lines, "", f"Untouched runs that fail: {untouched}.", f"Not applicable: {missing or 'none'}."])


def matrix(tallies: Mapping[str, Any], share: str) -> str:
    """Return detected shares by fault and set with intervals, lowest first."""
    names = {name for each in tallies.values() for name in each["faults"]}
    lines = [f"| fault | {' | '.join(tallies)} | all |", "|---" * (len(tallies) + 2) + "|"]
    rows = []
    for name in names:
        found = [NoticedShare(0, 0), *(_share(each["faults"].get(name), share) for each in tallies.values())]
        total = NoticedShare(sum(each.hits for each in found), sum(each.n for each in found))
        cells = [f"{each.value:.2f} ({each.n})" if each.n else "–" for each in found[1:]]
        low, high = total.interval or (0.0, 0.0)
        cells.append(f"{total.value:.2f} ({low:.2f} … {high:.2f})" if total.n else "–")
        rows.append((2.0 if total.value is None else total.value, f"| {name} | {' | '.join(cells)} |"))
    return "\n".join([*lines, *(line for _, line in sorted(rows))])


def summary(tallies: Mapping[str, Any]) -> str:
    """Return the numbers of faults and kinds."""
    planted = [(name, fault["n"]) for each in tallies.values() for name, fault in each["faults"].items() if fault["n"]]
    return f"{sum(n for _, n in planted):,} faults of {len({name for name, _ in planted})} kinds."


def _share(fault: Mapping[str, Any] | None, share: str) -> NoticedShare:
    return NoticedShare(0, 0) if fault is None else NoticedShare(fault[share]["hits"], fault["n"])


def _by(counts: Mapping[str, int], n: int) -> str:
    found = sorted(counts.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{metric} {hits / n:.2f}" for metric, hits in found[:2])


if __name__ == "__main__":
    main()

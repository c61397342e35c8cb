"""Draws flags of our metrics with evidence, for people to count true flags.

    python tests/lab/flags.py [SET ...] --metric trace.grounding [--metric …] --seed 7 --count 40 --out FOLDER
    python tests/lab/flags.py --verdicts FILE --folder FOLDER/trace.grounding --reader NAME
    python tests/lab/flags.py --table
    python tests/lab/flags.py --write-docs

A flag is a failed result, or a value named by ``trace.grounding``; ``.suspect`` after the metric selects suspects.
Flags are drawn evenly over sets and sessions of the held-out odd half (``--half``), without duplicates. The folder
gets ``NNN.txt``, ``records/NNN.txt`` and ``index.jsonl``. Prints how many good sessions have flags.

Verdicts are JSON lines ``{"flag": "NNN", "verdict": "true|general_knowledge|wrong", "cause": "a few words"}``, kept in
the ledger without set texts. ``--write-docs`` writes docs/internals/metric-quality.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from lab._evidence import QUESTIONS, Evidence  # noqa: E402
from lab._sessions import HALVES, SETS, requests, success  # noqa: E402
from pandaeval_collector.base.result import Result  # noqa: E402
from pandaeval_collector.base.score import Score  # noqa: E402
from pandaeval_collector.pipeline.line.decision import Conclusion  # noqa: E402
from pandaeval_collector.scoring.registry import registry  # noqa: E402
from pandaeval_lab.replay.files import Request  # noqa: E402
from pandaeval_lab.replay.replay import replay  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402
from support.flag_counts import LEDGER, record, recorded, table  # noqa: E402

SUSPECT = ".suspect"
Flag = tuple[str, Evidence]
"""The ID of a flag, and its evidence."""
_LATER = 3


def flags(name: str, asked: Iterator[Request], metrics: Sequence[str], seed: int) -> dict[str, list[Flag]]:
    """Return a set's flags by metric in draw order; print how many sessions have flags."""
    from lab.bench._labelled_runs import default_evaluator

    traces: dict[str, Trace] = {}
    results: dict[tuple[str, str], dict[str, Result]] = defaultdict(dict)
    of_sessions: dict[str, Result] = {}

    def take(decision: Conclusion) -> None:
        traces.update((trace.trace_id, trace) for trace in decision.traces)

    with TraceFiles() as run:
        run.add_all(asked)
        for result in replay(run, default_evaluator(), on_decided=take):
            if result.unit.level == "session":
                of_sessions[result.unit.id] = result
            else:
                results[f"{result.unit.level}.{result.metric}", result.unit.trace_id][result.unit.span_id] = result
    sessions: dict[str, list[Trace]] = defaultdict(list)
    for trace in sorted(traces.values(), key=lambda trace: (trace.start_ns, trace.trace_id)):
        sessions[trace.session_id or trace.trace_id].append(trace)
    drawn = {metric: _drawn(name, metric, sessions, results, seed) for metric in metrics}
    good = success(name) if name in SETS else {}
    for metric, found in drawn.items():
        failing = {flag.result.unit.session_id or flag.result.unit.trace_id for _, flag in found}
        rows = [(session in failing, good.get(session)) for session in sessions]
        of_good = f"{rows.count((True, True))} of {sum(label is True for _, label in rows)} good sessions"
        print(
            f"{name} {metric}: {len(found)} flags in {len(failing)} of {len(sessions)} sessions, {of_good}", flush=True
        )
    _tell_sessions(name, sessions, results, of_sessions, good)
    return drawn


def _tell_sessions(
    name: str,
    sessions: dict[str, list[Trace]],
    results: dict[tuple[str, str], dict[str, Result]],
    of_sessions: dict[str, Result],
    good: dict[str, bool],
) -> None:
    """Print counts of failed, good and fine sessions."""
    named = {trace.trace_id: session for session, traces in sessions.items() for trace in traces}
    failing = {named[trace] for (_, trace), each in results.items() for one in each.values() if one.success is False}
    decided = [of_sessions[session] for session in failing if session in of_sessions]
    fine = sum(one.success is True or one.label == "no_problem_found" for one in decided)
    of_good = sum(good.get(session) is True for session in failing)
    all_good = sum(good.get(session) is True for session in sessions)
    print(
        f"{name}: {len(failing)} of {len(sessions)} sessions have a failing result, "
        f"{of_good} of {all_good} good sessions; {fine} read as fine",
        flush=True,
    )


def _drawn(
    name: str,
    metric: str,
    sessions: dict[str, list[Trace]],
    results: dict[tuple[str, str], dict[str, Result]],
    seed: int,
) -> list[Flag]:
    """Return a metric's flags, alternating over sessions."""
    bare, suspected = metric.removesuffix(SUSPECT), metric.endswith(SUSPECT)
    version = registry()[bare].version
    rounds: dict[int, list[Flag]] = defaultdict(list)
    for session in sorted(sessions):
        chance = random.Random(f"{seed} {metric} {session}")
        found = []
        for place, trace in enumerate(sessions[session]):
            for span_id, result in sorted(results[bare, trace.trace_id].items()):
                entries = _entries(bare, result, suspected)
                if not entries:
                    continue
                entry = chance.choice(entries)
                around = sessions[session][: place + 1 + _LATER]
                where = trace.trace_id + (span_id if bare.startswith("turn.") else "")
                what = f"{metric} {version} {where} {entry['value'] if entry else ''}"
                of_flag = hashlib.sha256(what.encode()).hexdigest()[:16]
                found.append((of_flag, Evidence(metric, version, result, entry, around, place)))
        chance.shuffle(found)
        for number, flag in enumerate(found):
            rounds[number].append(flag)
    ordered = []
    for number in sorted(rounds):
        random.Random(f"{seed} {name} {metric} {number}").shuffle(rounds[number])
        ordered += rounds[number]
    return ordered


def _entries(metric: str, result: Result, suspected: bool) -> Sequence[dict[str, Any] | None]:
    if not isinstance(result.finding, Score):
        return ()
    fails = result.success is False
    if metric == "trace.grounding":
        if suspected:
            return result.finding.metadata.get("suspect", ())
        return result.finding.metadata.get("not_grounded", ()) if fails else ()
    return (None,) if (result.label == "suspect" if suspected else fails) else ()


def draw(
    sets: Sequence[str],
    half: str,
    metrics: Sequence[str],
    seed: int,
    count: int,
    out: Path,
    source: Callable[[str, str], Iterator[Request]] = requests,
) -> dict[str, Counter[str]]:
    """Write drawn flags; return counts by metric and set. Shared sessions are drawn once."""
    by_set = {}
    for name in sets:
        by_set[name] = flags(name, source(name, half), metrics, seed)
    drawn: dict[str, Counter[str]] = {}
    for metric in metrics:
        columns = [[(name, *flag) for flag in by_set[name][metric]] for name in sets]
        chosen: dict[tuple[str, str], tuple[str, str, Evidence]] = {}
        for row in zip_longest(*columns):
            for flag in filter(None, row):
                chosen.setdefault(_alike(flag[2]), flag)
        _write(out / metric, [*chosen.values()][:count], seed)
        drawn[metric] = Counter(name for name, *_ in [*chosen.values()][:count])
    return drawn


def _alike(flag: Evidence) -> tuple[str, str]:
    trace = flag.traces[flag.place]
    words = str(flag.entry["text"] if flag.entry else trace.output or flag.result.finding.reason)
    return (trace.session_id, words) if trace.session_id else ("", re.sub(r"\d+", "0", words))


def _write(folder: Path, chosen: Sequence[tuple[str, str, Evidence]], seed: int) -> None:
    (folder / "records").mkdir(parents=True, exist_ok=True)
    chosen = random.Random(seed).sample(chosen, len(chosen))
    index = []
    for place, (name, of_flag, evidence) in enumerate(chosen, 1):
        number = f"{place:03d}"
        index.append(
            {"number": number, "flag": of_flag, "metric": evidence.metric, "version": evidence.version, "set": name}
        )
        (folder / f"{number}.txt").write_text(f"flag {number}\n{evidence.page()}", encoding="utf-8")
        (folder / "records" / f"{number}.txt").write_text(evidence.record(), encoding="utf-8")
    (folder / "index.jsonl").write_text("".join(json.dumps(each) + "\n" for each in index), encoding="utf-8")


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--metric", action="append", choices=[*QUESTIONS], help="may be repeated; if not given, all")
    parser.add_argument("--half", choices=HALVES, default="odd")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--count", type=int, default=40, help="flags of each metric")
    parser.add_argument("--out", type=Path, default=Path("flags"), help="folder of the drawn flags")
    parser.add_argument("--verdicts", type=Path, help="what people read in a folder of flags, JSON lines")
    parser.add_argument("--folder", type=Path, help="of --verdicts: the folder; if not given, that of the file")
    parser.add_argument("--reader", default="reader 1", help="of --verdicts: who read")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--table", action="store_true", help="print what the ledger counts")
    parser.add_argument("--write-docs", action="store_true", help="write it into docs/internals/metric-quality.md")
    asked = parser.parse_args()
    if asked.verdicts is not None:
        index = _lines((asked.folder or asked.verdicts.parent) / "index.jsonl")
        taken, missing = record(_lines(asked.verdicts), index, asked.reader, asked.ledger)
        print(f"{taken} verdicts taken, {missing} flags without one")
    if asked.table:
        print(table(recorded(asked.ledger)))
    if asked.write_docs:
        from support.metrics_page import QUALITY, quality_page

        QUALITY.write_text(quality_page(), encoding="utf-8")
    if asked.verdicts is None and not asked.table and not asked.write_docs:
        drawn = draw(asked.sets or SETS, asked.half, asked.metric or [*QUESTIONS], asked.seed, asked.count, asked.out)
        for metric, count in drawn.items():
            print(f"{metric}: {count.total()} {dict(count)}")


if __name__ == "__main__":
    main()

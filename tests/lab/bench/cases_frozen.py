"""Grades cases frozen from recorded runs against these runs.

    python tests/lab/bench/cases_frozen.py [SET…]

Freezes each labelled session of ``../shared/data``, fills in the set's reference, and grades it. Prints agreement
with the set's labels. Also prints how many of 200 planted secrets reach the case files.
"""

from __future__ import annotations

import json
import lzma
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

import yaml  # noqa: E402

from pandaeval_collector.analysis.rules._verbs import Nature, nature  # noqa: E402
from pandaeval_collector.config import load  # noqa: E402
from pandaeval_collector.runs.settings import evaluator  # noqa: E402
from pandaeval_collector.show.report.detail import describe  # noqa: E402
from pandaeval_lab.cases.files import (  # noqa: E402
    case_file,
    freeze,
    read_suite,
)
from pandaeval_lab.cases.grading import TrialGrader  # noqa: E402
from pandaeval_lab.cases.trial import Trial, TrialMatcher  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
SETS = ("tau-bench", "tau2-pairs", "agentrx-tau")
Labels = dict[str, dict[str, Any]]


def labels(folder: Path) -> Labels:
    found: Labels = {}
    with lzma.open(folder / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["session_id"] is not None:
                found.setdefault(row["session_id"], {})[row["name"]] = row["value"]
    return found


def sessions(folder: Path) -> dict[str, list[Trace]]:
    found: dict[str, list[Trace]] = {}
    with TraceFiles() as run:
        for request in Input(str(folder / "traces.jsonl.xz")).requests():
            run.add(request)
        for trace in run.traces():
            if trace.session_id is not None:
                found.setdefault(trace.session_id, []).append(trace)
    return found


CHECKS_ACTIONS = {"tau2-pairs"}
"""Sets whose label requires read-only calls."""


def filled_in(text: str, known: dict[str, Any], checks_actions: bool) -> str:
    """Return the case file with the set's reference."""
    held = yaml.safe_load(text)
    case = held["cases"][0]
    calls = known["expected_tool_calls"]
    case["expected_tools"] = [
        {
            "tool_name": call["name"],
            "parameters": call["arguments"],
            "compare_args": compared(call),
        }
        for call in calls
        if call.get("requestor", "assistant") == "assistant"
    ]
    case.pop("open")
    names = [call["name"] for call in calls]
    if checks_actions and names and not any(nature(name) is Nature.CHANGING for name in names):
        handed = [name for name in names if nature(name) is Nature.HAND_OVER]
        if handed:  # the task ends with a transfer of the user
            case["required_order"] = handed
            case.pop("expected_tools")
    if known.get("expected_outputs"):
        case["output_format"] = {"contains": known["expected_outputs"]}
    return json.dumps(held)


def compared(call: dict[str, Any]) -> dict[str, str]:
    """Return the arguments that the reference compares."""
    names = call["arguments"] if call.get("compare_args") is None else call["compare_args"]
    handover = nature(call["name"]) is Nature.HAND_OVER
    return {
        name: "any" if handover else "unordered" if isinstance(call["arguments"].get(name), list) else "exact"
        for name in names
    }


def graded(
    traces: list[Trace], known: dict[str, Any], checks: bool, grader_of: Any, folder: Path
) -> tuple[bool | None, str]:
    text = "".join(case_file([freeze([describe(trace) for trace in traces], "frozen")]))
    path = folder / "case.json"
    path.write_text(filled_in(text, known, checks), encoding="utf-8")
    suite = read_suite(path)
    gathered = TrialMatcher(suite)
    gathered.add(traces)
    (attempt,) = gathered.attempts()
    trial = Trial(attempt.case, attempt.name, tuple(traces))
    results = {each.metric: each for each in grader_of(suite).results(trial)}
    correct = results["trial_correct"]
    return correct.success, correct.finding.reason


def shares(name: str, grader_of: Any) -> Iterator[str]:
    folder = DATA / name
    known, runs = labels(folder), sessions(folder)
    right: Counter[bool] = Counter()
    of: Counter[bool] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for session, traces in runs.items():
            success = known.get(session, {}).get("task_success")
            if success is None:
                continue
            verdict, reason = graded(traces, known[session], name in CHECKS_ACTIONS, grader_of, Path(scratch))
            of[success] += 1
            right[success] += verdict is success
            if "-v" in sys.argv and verdict is not success:
                print(f"  {session} label {success}, case {verdict}: {reason[:400]}")
    for success, word in ((False, "failing"), (True, "successful")):
        yield f"{word} {right[success]}/{of[success]} ({right[success] / max(1, of[success]):.1%})"


def planted(count: int = 200) -> int:
    """Return how many planted secrets reach a case file."""
    from support.secrets import make, plant

    draw, runs = random.Random(11), sessions(DATA / "tau-bench")
    names, found = sorted(runs), 0
    for number in range(count):
        secret = make(draw, number)
        descriptions = [describe(trace) for trace in runs[draw.choice(names)]]
        text = "".join(case_file([freeze(plant(draw, descriptions, secret, number), "frozen")]))
        found += secret.value in text
    return found


def main() -> None:
    base = evaluator(load(None, {}))
    chosen = [each for each in sys.argv[1:] if not each.startswith("-")] or SETS
    for name in chosen:
        print(f"{name}: {', '.join(shares(name, lambda suite: TrialGrader(base, suite)))}", flush=True)
    print(f"planted secrets in case files: {planted()} of 200")


if __name__ == "__main__":
    if not DATA.exists():
        sys.exit("the labelled runs (../shared/data) are not here")
    main()

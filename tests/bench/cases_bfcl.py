"""Graders of parameters, order and selection on the recorded function calls of BFCL, against its own checker.

    python tests/bench/cases_bfcl.py [-v]

Each of the 2,480 recorded runs is a trial of a case that is made of its ground truth: expected calls with the acceptable
values of each argument. Printed, by category and grader: how often the grader and BFCL's AST checker agree on pass or
fail, where both define it (`relevance` has no expected calls; there the checker's verdict is held against "no call").
"""

from __future__ import annotations

import itertools
import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from pandaeval_collector.cases import Case, Suite, Trial  # noqa: E402
from pandaeval_collector.config import load  # noqa: E402
from pandaeval_collector.evaluator.trials import TrialGrader  # noqa: E402
from pandaeval_collector.filerun import FileRun  # noqa: E402
from pandaeval_collector.receivers.files import Input  # noqa: E402
from pandaeval_collector.settings import evaluator  # noqa: E402

from pandaeval_otel.model import Trace  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "bfcl"
GRADERS = ("trial_correct", "tool_correctness", "parameter_correctness", "tool_selection_f1", "tool_routing_accuracy",
           "plan_quality")  # fmt: skip
WHOLE = 1.0 - 1e-9


def labels() -> dict[str, dict[str, Any]]:
    """By trace, what is known of it."""
    found: dict[str, dict[str, Any]] = {}
    with lzma.open(DATA / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            about = found.setdefault(row["trace_id"], {"category": row["category"], "item": row["item"]})
            about[row["name"]] = row["value"]
    return found


def traces() -> Iterator[Trace]:
    with FileRun(None) as run:
        for request in Input(str(DATA / "traces.jsonl.xz")).requests():
            run.add(request)
        yield from run.traces()


def case_of(trace: Trace, known: dict[str, Any]) -> Case:
    """The ground truth as a case. ``""`` among acceptable values says that the argument may be left out."""
    schemas = {tool.name: tool.parameters for tool in trace.tools}
    calls = known.get("expected_tool_calls") or []
    return Case.model_validate(
        {
            "id": trace.trace_id,
            "expected_tools": [expected(call, schemas.get(call["name"]) or {}) for call in calls],
            "tool_sequence_matters": False,
        }
    )


def expected(call: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    acceptable = call["acceptable_arguments"]
    if isinstance(acceptable, list):  # a slip of the ground truth: a call within a call
        acceptable = {}
    return {
        "tool_name": call["name"],
        "parameters": {},
        "acceptable": {name: [each for value in values for each in spread(value)] for name, values in
                       acceptable.items()},
        "optional": [name for name, values in acceptable.items() if "" in values],
        "compare_args": {**dict.fromkeys(schema.get("properties", {}), "exact"), **dict.fromkeys(acceptable, "text")},
    }  # fmt: skip


def spread(value: Any) -> Iterator[Any]:
    """An object's acceptable value holds a list of acceptable values for each of its keys, also in lists of objects."""
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        yield from (list(each) for each in itertools.product(*(list(spread(item)) for item in value)))
        return
    if not isinstance(value, dict):
        yield value
        return
    made: list[dict[str, Any]] = [{}]
    for key, values in value.items():
        choices = values if isinstance(values, list) else [values]
        made = [
            one if choice == "" and len(choices) > 1 else {**one, key: choice} for one in made for choice in choices
        ]
    yield from made


def main() -> None:
    base, known = evaluator(load(None, {})), labels()
    agree: dict[str, Counter[str]] = {}
    of: Counter[str] = Counter()
    for trace in traces():
        about = known.get(trace.trace_id, {})
        if "tool_calls_correct" not in about:
            continue
        case = case_of(trace, about)
        results = TrialGrader(base, Suite(cases=(case,))).results(Trial(case, "1", (trace,)))
        found = {each.metric: each for each in results}
        category = about["category"]
        of[category] += 1
        for grader in GRADERS:
            result = found.get(grader)
            said = result is None or result.outcome == "assumed" or (result.score or 0.0) >= WHOLE
            agree.setdefault(grader, Counter())[category] += said is about["tool_calls_correct"]
            if grader == "trial_correct" and said is not about["tool_calls_correct"] and "-v" in sys.argv:
                print(json.dumps({"item": about["item"], "bfcl": about["tool_calls_correct"],
                                  "error": about.get("error_type"), "sub": about.get("sub_error_types"),
                                  "expected": about.get("expected_tool_calls"),
                                  "called": [[c.name, c.arguments] for c in trace.tool_calls]})[:900])  # fmt: skip
    categories = sorted(of)
    print("| grader | " + " | ".join(f"{each} ({of[each]})" for each in categories) + " | all |")
    print("|---" * (len(categories) + 2) + "|")
    for grader, counts in agree.items():
        cells = [f"{counts[each] / of[each]:.1%}" for each in categories]
        print(f"| {grader} | {' | '.join(cells)} | {counts.total() / of.total():.2%} |")


if __name__ == "__main__":
    if not DATA.exists():
        sys.exit("the labelled runs (../shared/data) are not here")
    main()

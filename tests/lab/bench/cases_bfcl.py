"""Compares graders with BFCL's own checker on recorded function calls.

    python tests/lab/bench/cases_bfcl.py [-v]

Each run is a trial of a case from its ground truth. Prints agreement on pass or fail by category and grader.
Each grader is compared only on runs whose verdict concerns it.
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

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector"), str(ROOT / "tests")]

from pandaeval_collector.config import load  # noqa: E402
from pandaeval_collector.runs.settings import evaluator  # noqa: E402
from pandaeval_lab.cases import Case, Suite, Trial  # noqa: E402
from pandaeval_lab.cases.grading import TrialGrader  # noqa: E402
from pandaeval_lab.replay.files import Input  # noqa: E402
from pandaeval_lab.replay.trace_files import TraceFiles  # noqa: E402
from pandaeval_otel.model import Trace  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "bfcl"
GRADERS = ("trial_correct", "tool_correctness", "parameter_correctness", "tool_selection_f1", "tool_routing_accuracy",
           "plan_quality")  # fmt: skip
WHOLE = 1.0 - 1e-9


def labels() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    with lzma.open(DATA / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            about = found.setdefault(row["trace_id"], {"category": row["category"], "item": row["item"]})
            about[row["name"]] = row["value"]
    return found


def traces() -> Iterator[Trace]:
    with TraceFiles() as run:
        for request in Input(str(DATA / "traces.jsonl.xz")).requests():
            run.add(request)
        yield from run.traces()


def case_of(trace: Trace, known: dict[str, Any]) -> Case:
    """Return the ground truth as a case; ``""`` marks an optional argument."""
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
    if isinstance(acceptable, list):  # an error in the ground truth: a call inside a call
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
    """Expand acceptable values of objects and lists."""
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


def wrong_names(about: dict[str, Any]) -> bool:
    """Return whether tool names or call count are wrong."""
    error_types = [str(about.get("error_type") or ""), *(about.get("sub_error_types") or ())]
    return any(each.endswith(("wrong_count", "wrong_func_name", "decoder_failed")) for each in error_types)


def truth(grader: str, about: dict[str, Any]) -> bool | None:
    """Return the checker's verdict for a grader, or ``None``."""
    correct: bool = about["tool_calls_correct"]
    calls = about["n_calls"] - len(about.get("expected_tool_calls") or ())
    single = about["category"] in ("simple", "multiple_function")
    mixed = about["category"] == "parallel_multiple_function" and any(
        each.endswith("wrong_func_name") for each in about.get("sub_error_types") or ()
    )  # with several tools, the checker reports a wrong value as a wrong name
    match grader:
        case "trial_correct" | "tool_correctness":
            return correct
        case _ if about["category"] == "relevance":
            return None
        case "parameter_correctness":
            return correct if calls == 0 else None
        case "tool_selection_f1":
            return None if mixed else not wrong_names(about)
        case _:
            return not wrong_names(about) if single and calls <= 0 else None


def main() -> None:
    base, known = evaluator(load(None, {})), labels()
    agree: dict[str, Counter[str]] = {grader: Counter() for grader in GRADERS}
    of: dict[str, Counter[str]] = {grader: Counter() for grader in GRADERS}
    for trace in traces():
        about = known.get(trace.trace_id, {})
        if "tool_calls_correct" not in about:
            continue
        case = case_of(trace, about)
        results = TrialGrader(base, Suite(cases=(case,))).results(Trial(case, "1", (trace,)))
        found = {each.metric: each for each in results}
        for grader in GRADERS:
            result, right = found.get(grader), truth(grader, about)
            if right is None:
                continue
            passed = result is None or result.outcome == "assumed" or (result.score or 0.0) >= WHOLE
            of[grader][about["category"]] += 1
            agree[grader][about["category"]] += passed is right
            if passed is not right and "-v" in sys.argv:
                tell(grader, about, trace)
    categories = sorted(of["trial_correct"])
    print("| grader | " + " | ".join(categories) + " | all |")
    print("|---" * (len(categories) + 2) + "|")
    for grader, counts in agree.items():
        cells = [f"{counts[each] / of[grader][each]:.1%}" if of[grader][each] else "-" for each in categories]
        total = of[grader].total()
        print(f"| {grader} | {' | '.join(cells)} | {counts.total() / total:.2%} of {total} |")


def tell(grader: str, about: dict[str, Any], trace: Trace) -> None:
    names = ("item", "tool_calls_correct", "error_type", "sub_error_types", "expected_tool_calls")
    called = [[call.name, call.arguments] for call in trace.tool_calls]
    print(json.dumps({"grader": grader, **{name: about.get(name) for name in names}, "called": called})[:900])


if __name__ == "__main__":
    if not DATA.exists():
        sys.exit("the labelled runs (../shared/data) are not here")
    main()

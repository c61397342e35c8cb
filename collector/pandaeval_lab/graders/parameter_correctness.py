"""Do the arguments of the expected calls fit their schema, and do they have the expected values?

If a call fits the schema of its tool, or has no known schema, its score is the share of expected arguments with the
expected value. Other calls and missing calls score 0. The grader matches actual calls to expected calls so that the sum
of scores is highest. The schema comes from the case (``tool_schemas``), otherwise from the trace. An invalid schema of
the trace is ignored. Arguments are equal as JSON, or by ``acceptable``, ``optional`` and ``compare_args``. It does not
judge unexpected calls. If no call is expected, 1.0 is assumed. The grader ignores a call if it has neither a known
schema nor expected arguments. If no call remains, there is no score.

Scale: 0..1, the mean over the expected calls.
Source: Agent Evaluation Framework, layer 2, *Parameter correctness*.
"""

from __future__ import annotations

import math
from typing import Any

from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_lab.cases.arguments import arguments_of, differing, matched, semantic
from pandaeval_lab.cases.model import ExpectedCall
from pandaeval_lab.cases.schemas import BadSchemaError, schema_errors
from pandaeval_lab.cases.trial import Trial, TrialContext
from pandaeval_lab.graders._expected import COUNTED, NOTHING_EXPECTED, trial_metric
from pandaeval_otel.model import ToolCall


def _evaluate(trial: Trial, context: TrialContext) -> Finding | None:
    expected = trial.expected
    if expected is None:
        return None
    if not expected:
        return NOTHING_EXPECTED
    if any(not call.has_arguments for call in trial.calls if call.name in {each.tool_name for each in expected}):
        return Unscored(Why.NO_CONTENT, "arguments of the calls were not captured")
    pairs = matched(expected, trial.calls, lambda each, call: _worth(_judged(trial, each, call)))
    made = {row: trial.calls[column] for row, column, _ in pairs}
    calls = [_judged(trial, each, made.get(at)) for at, each in enumerate(expected)]
    known = [each for each in calls if each["schema_valid"] is not None or each["semantic_score"] is not None]
    if not known:
        return Unscored(
            Why.INSUFFICIENT_EVIDENCE, "neither a schema nor expected arguments are known", {"calls": calls}
        )
    semantics = [each["semantic_score"] for each in known if each["semantic_score"] is not None]
    metadata = {
        "schema_valid": all(each["schema_valid"] is not False for each in known),
        "schema_errors": [f"{each['tool_name']}: {error}" for each in known for error in each["schema_errors"]],
        "semantic_score": math.fsum(semantics) / len(semantics) if semantics else None,
        "calls": calls,
    }
    return Score(math.fsum(map(_worth, known)) / len(known), _reason(known), metadata)


def _judged(trial: Trial, expected: ExpectedCall, call: ToolCall | None) -> dict[str, Any]:
    name = expected.tool_name
    if call is None:
        record = {"tool_name": name, "schema_valid": False, "semantic_score": 0.0, "differing": []}
        return {**record, "schema_errors": ["the call was not made"]}
    errors: list[str] | None = None
    if name in trial.schemas:
        try:
            errors = schema_errors(trial.schemas[name], arguments_of(call))
        except BadSchemaError:  # the application can declare an invalid schema, which is not the agent's error
            errors = None
    return {
        "tool_name": name,
        "schema_valid": None if errors is None else not errors,
        "schema_errors": errors or [],
        "semantic_score": semantic(expected, call),
        "differing": differing(expected, call),
    }


def _worth(call: dict[str, Any]) -> float:
    if call["schema_valid"] is False:
        return 0.0
    if call["semantic_score"] is None:
        return 1.0
    return float(call["semantic_score"])


def _reason(known: list[dict[str, Any]]) -> str:
    wrong = [each for each in known if _worth(each) < 1.0]
    if not wrong:
        return f"the arguments of {len(known)} expected calls are right"
    faults = (
        f"{each['tool_name']} ({'; '.join((each['schema_errors'] or each['differing'])[:3])})" for each in wrong[:5]
    )
    return f"{', '.join(faults)}; wrong: {len(wrong)} of {len(known)} expected calls"


METRIC = trial_metric(
    _evaluate,
    version="3",
    threshold=0.5,
    needs=COUNTED,
    unscored=(Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
    layer="action",
)

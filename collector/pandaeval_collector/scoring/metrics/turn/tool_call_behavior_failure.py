"""Were the tools used correctly in this turn?

A judge looks for needless calls, wrong tools, wrong arguments, ignored results and missing calls. Code finds repeated
calls by the rule of ``tool_loop``, even without a judge. If no repetition has three rounds, the label is
``suspect``, which fails no turn. A result shows only the most severe label. ``metadata.labels`` lists all labels, and
``metadata.repeated`` lists the repeated calls. It does not judge the answer. The labels are, the most severe first:
ignored tool result, wrong tool, wrong arguments, missing tool call, repeated tool call, unnecessary tool call.

Scale: 1 if no failure was found, otherwise 0.
Source: Agentest, evaluation metrics, *Tool Call Behavior Failure*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pandaeval_collector.analysis.rules.tool_loop import tool_loop
from pandaeval_collector.base.result import SUSPECT
from pandaeval_collector.base.score import Score
from pandaeval_collector.judge.turns import TurnView
from pandaeval_collector.scoring.metrics.turn._rating import (
    NO_FAILURE,
    Labels,
    failures,
    labelled,
    labels_error,
    labels_shape,
)

MISSING, REPEATED = "missing tool call", "repeated tool call"
LABELS = ("ignored tool result", "wrong tool", "wrong arguments", MISSING, REPEATED, "unnecessary tool call")
"""Most severe first."""
_MOST = 100


def _check(found: Labels, given: Mapping[str, Any]) -> str | None:
    if not given.get("calls") and not {*found.labels} <= {NO_FAILURE, MISSING}:
        return f'labels: no tool was called, so only "{NO_FAILURE}" or "{MISSING}" is possible'
    return labels_error(found, given)


def _by_code(view: TurnView) -> Score | None:
    calls = view.tool_calls
    if len(calls) < 2:
        return None
    loop = tool_loop(view.trace)
    repeated = loop.repeated
    if not repeated:
        return None
    names = ", ".join(dict.fromkeys(calls[index].name for index in repeated[:_MOST]))
    times = f"{len(repeated)} call{'' if len(repeated) == 1 else 's'}"
    reason = f"{times} to {names} repeated an earlier call and brought no new result (found by code)"
    spans = tuple(dict.fromkeys(calls[index].span_id for index in repeated[:_MOST]))
    numbers = {"repeated": [index + 1 for index in repeated[:_MOST]]}
    score = labelled([REPEATED], LABELS, reason, {"turn": view.turn_index, **numbers}, span_ids=spans)
    return score if loop.looping else replace(score, label=SUSPECT, failed=False)


METRIC = failures(
    "tool_call_behavior_failure",
    about=__doc__,
    version="5",
    question="Were the tools used correctly in this turn?",
    needs="tool calls or definitions, and a judge for all labels except repeated calls",
    text="""
Were the tools used correctly in this turn? Name every kind of failure that plainly applies, and none on a mere
suspicion:

no failure             the calls were appropriate, or none was needed and none was made
unnecessary tool call  the answer was already in the instructions, the conversation or a result
wrong tool             a different tool than the task needs (create_booking instead of update_booking)
wrong arguments        the right tool, with wrong or incomplete arguments (a search for "")
ignored tool result    it ignored or contradicted a result ("no availability", and it offers hours)
missing tool call      it had a tool that the answer needs, and did not call it (it states the weather without a look)

Code counts calls that were repeated in vain; they are no failure here. If no tool was called, only "missing tool call"
is possible. An explicit null for an optional argument is no failure. A result that was not captured is unknown, not
ignored. Example: asked for the weather, it looks, and reports the result: no failure.
""",
    answer=labels_shape(
        "ToolBehavior",
        "The wrong or missing call and why, or that there is none, in one to three sentences.",
        ("unnecessary tool call", "wrong tool", "wrong arguments", "ignored tool result", MISSING),
    ),
    order=LABELS,
    check=_check,
    by_code=_by_code,
    applies=lambda view: bool(view.tool_calls) or (bool(view.trace.tools) and view.agent_message is not None),
)

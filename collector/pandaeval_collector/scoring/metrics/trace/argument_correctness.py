"""Were the tools called with the right arguments?

For every tool call, a judge decides whether the arguments fit the user's request and the facts that the agent knew
(yes, no or unknown). The score is the share of yes among the answers yes and no. It does not judge whether the tool was
right (``tool_correctness``). ``verdicts[].call`` is the position of the call, from 1.

If a tool refused the arguments because of its schema, code decides no. The judge ignores calls without fully captured
arguments. If more than 40 calls are left, it reads only the first 20 and the last 20. ``coverage`` is the share of
calls with the answer yes or no. Below one half, there is no score, unless most of these answers are no. Without a tool
call, the score is assumed.

Scale: 0..1, the share of decided calls with the answer yes.
Source: PandaProbe, trace metrics, *Argument Correctness*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, Literal

from pydantic import Field

from pandaeval_collector.base.score import Assumed, Finding, Score, Unscored, Why
from pandaeval_collector.judge.rubric import Answer, Facts, Reason
from pandaeval_collector.judge.run_facts import thoughts
from pandaeval_collector.scoring.metric import TraceContext
from pandaeval_collector.scoring.metrics.trace._facts import (
    USER_INPUT,
    judged_trace_metric,
    undetermined,
    user_input,
    why_not_captured,
)
from pandaeval_otel.model import ToolCall, Trace

# Error texts of tools that refuse the form of their arguments.
_PLAIN = re.compile(
    r"-32602\b"  # JSON-RPC's number for invalid params, which MCP servers answer
    r"|\binvalid (?:tool |function |input )?(?:arguments?|params|parameters)\b"
    r"|\b(?:arguments?|tool input|input) (?:did|does|do) not match (?:the |its )?(?:\w+ )?schema\b"
    r"|\bjsonschema\b.{0,80}\bvalidationerror\b"
    r"|\bgot an unexpected keyword argument\b"
    r"|\bmissing \d+ required (?:positional|keyword-only) arguments?\b",
    re.IGNORECASE | re.DOTALL,
)
_TITLED = re.compile(r"\b\d+ validation errors? for (?:call\[)?([\w.\- ]{1,120})", re.IGNORECASE)
_LOOKED_AT = 4000
_MOST_REASONING = 300
MAX_JUDGED = 40
ENOUGH = 0.5
"""Minimum share of calls with the answer yes or no, for a score that is not low."""
_NAME = 50
"""Maximum characters of a name, so that the question has room for all calls."""
_REFUSED = "the tool rejected the arguments: they do not match its schema"


def are_arguments_rejected(call: ToolCall) -> bool:
    """Return whether the call failed because its arguments do not fit the tool's schema.

    A pydantic error counts only if it names the tool.
    """
    if not call.error:
        return False
    error = call.error[:_LOOKED_AT]
    name = _bare(call.name)
    titles = (_bare(found[1]) for found in _TITLED.finditer(error))
    return _PLAIN.search(error) is not None or (bool(name) and any(title.startswith(name) for title in titles))


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


class CallVerdict(Answer):
    call: int
    reason: Annotated[str, Field(max_length=300)]
    """In at most 25 words: the source of the values, or the error."""
    verdict: Literal["yes", "no", "unknown"]


class Arguments(Answer):
    verdicts: Annotated[list[CallVerdict], Field(max_length=MAX_JUDGED)]
    """In the order of the list."""
    reason: Reason
    """The errors overall, or that there are none."""


def _check(verdict: Arguments, given: Mapping[str, Any]) -> str | None:
    asked = [each["call"] for each in given["tool_calls"]]
    answered = [each.call for each in verdict.verdicts if each.reason.strip()]
    if sorted(answered) == asked:
        return None
    return f"verdicts: exactly one for each of the {len(asked)} calls listed is wanted, by its number, with a reason"


def _before_asking(trace: Trace, context: TraceContext) -> Finding | None:
    if not trace.tool_calls:
        return Assumed("no tool was called", {"user_input": user_input(trace), "verdicts": []})
    numbers = _judged(trace)
    if not numbers:
        return Unscored(Why.NO_CONTENT, f"no arguments of calls were captured ({why_not_captured(trace)})")
    if all(are_arguments_rejected(trace.tool_calls[number - 1]) for number in numbers):
        return _share(trace, user_input(trace), dict.fromkeys(numbers), "")
    return None


def _judged(trace: Trace) -> list[int]:
    numbers = [
        number for number, call in enumerate(trace.tool_calls, 1) if _known(trace, call) or are_arguments_rejected(call)
    ]
    half = MAX_JUDGED // 2
    return numbers if len(numbers) <= MAX_JUDGED else numbers[:half] + numbers[-half:]


def _known(trace: Trace, call: ToolCall) -> bool:
    if isinstance(call.arguments, str) and call.arguments.lstrip().startswith(("{", "[")):
        return False
    if call.has_arguments and not call.arguments and isinstance(call.arguments, Mapping):
        schema = tool.parameters if (tool := trace.definition(call)) is not None else None
        return not (isinstance(schema, Mapping) and schema.get("required"))
    return call.has_arguments


def _share(trace: Trace, asked: str | None, found: Mapping[int, CallVerdict | None], reason: str) -> Score | Unscored:
    verdicts: list[dict[str, Any]] = []
    for number, answer in sorted(found.items()):
        if answer is None or are_arguments_rejected(trace.tool_calls[number - 1]):
            verdicts.append({"call": number, "verdict": "no", "reason": _REFUSED})
        else:
            verdicts.append({"call": number, "verdict": answer.verdict, "reason": answer.reason})
    for each, reasoning in zip(verdicts, _reasoning(trace, sorted(found)), strict=True):
        each |= {"reasoning": reasoning} if reasoning else {}
    right = sum(each["verdict"] == "yes" for each in verdicts)
    undecided = [each["call"] for each in verdicts if each["verdict"] == "unknown"]
    known = len(verdicts) - len(undecided)
    if not known:
        return undetermined(reason)
    by_code = [each["call"] for each in verdicts if each["reason"] == _REFUSED]
    sentences = [f"{right} of {known} calls had the right arguments."]
    if len(verdicts) < len(trace.tool_calls):
        sentences.append(f"Calls {_ranges(sorted(found))} of {len(trace.tool_calls)} were judged.")
    if undecided:
        sentences.append(f"Undecided: calls {_ranges(undecided)}.")
    if by_code:
        sentences.append(f"Rejected by the tool: calls {_ranges(by_code)}.")
    coverage, metadata = known / len(trace.tool_calls), {"user_input": asked, "verdicts": verdicts}
    explanation = " ".join([*sentences, reason]).strip()
    if coverage < ENOUGH <= right / known:
        too_few = f"too few calls were decided: {known} of {len(trace.tool_calls)}. {explanation}"
        return Unscored(Why.INSUFFICIENT_EVIDENCE, too_few, metadata, coverage)
    return Score(
        right / known,
        explanation,
        metadata,
        coverage=coverage,
        span_ids=tuple(trace.tool_calls[each["call"] - 1].span_id for each in verdicts if each["verdict"] == "no"),
    )


def _reasoning(trace: Trace, numbers: Sequence[int]) -> Iterator[str]:
    """Yield the agent's last thought or remark before each call, since the call before it."""
    spoken = thoughts(trace)
    for number in numbers:
        since = trace.tool_calls[number - 2].start_ns if number > 1 else 0
        own = [text for time, _, text in spoken if since <= time <= trace.tool_calls[number - 1].start_ns]
        yield own[-1][:_MOST_REASONING] if own else ""


def _ranges(numbers: Sequence[int]) -> str:
    rows = [[number for _, number in row] for _, row in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(row[0]) if len(row) == 1 else f"{row[0]}-{row[-1]}" for row in rows)


def _score(verdicts: Sequence[CallVerdict], found: Arguments, trace: Trace, facts: Facts) -> Score | Unscored:
    asked = user_input(trace) or facts.get("task")
    return _share(trace, asked, {each.call: each for each in verdicts}, found.reason)


METRIC = judged_trace_metric(
    "argument_correctness",
    about=__doc__,
    version="12",
    question="Were the tools called with the right arguments?",
    needs="tool calls with their arguments; a judge",
    text="""
Were the arguments of each tool call right? Give one verdict for each call that is listed below under "tool_calls", by
its number in the record, and no others. The agent's thoughts and words before a call are no evidence that it is right.

yes: the arguments match the user's request or the results known by then, and include everything that the tool needs.
Values from the instructions and the earlier conversation are known. These are a yes too: a sensible default for an open
point, an explicit null for an optional argument, another spelling of the same value, a result of arithmetic, and a date
that follows from the date of the run. If no tool or instruction specifies a form, each usual form is a yes.

no: a value is wrong, mixed up, lost or invented (it is not in the record and does not follow from it). Also no: a
condition of the user (a limit, a date, a place, a number) is missing although the tool could take it, or the form
differs from the form that the tool requires.

unknown: the record does not show it. A value may come from a result that was not captured, or from a part that was cut.

Example: the user wants Friday the 14th. Date 14 without the language, which nobody named, is a yes. Date 13 is a no.

A failed call is evidence only if the error is about the arguments. Do not judge whether the tool was right.
""",
    answer=Arguments,
    decides="verdicts",
    score=_score,
    evaluate=_before_asking,
    check=_check,
    tokens=2950,
    extractions=(USER_INPUT,),
    given=lambda trace, facts: {
        **facts,
        "tool_calls": [
            {"call": number, "name": trace.tool_calls[number - 1].name[:_NAME]} for number in _judged(trace)
        ],
    },
)

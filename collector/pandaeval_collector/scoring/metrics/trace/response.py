"""Did the run end with an answer or a declared end?

The score is 1 if the run ended with an answer or a declared end, otherwise 0 with a label. It does not judge whether
the answer is right, and a refusal is no failure. The labels of score 0:

- ``error``: the run ended with an error, or the answer is an error text.
- ``empty_answer``: the answer is empty, only punctuation, or a placeholder such as ``(no response)``.
- ``control_token``: the answer is a token, such as ``###STOP###``, that declares no end.
- ``dangling_tool_call``: the last tool call has no result, or the answer is a call as text that did not run.
- ``false_success``: a change failed, and the answer claims success. Or tests, a build or a linter failed last, and the
  answer claims that they pass. The severity is critical.
- ``unrecovered_tool_error``: a change failed, and the run did not recover. If the answer admits the failure, the score
  is 0.4.

Labels of other scores:

- ``truncated``: the answer was cut off. The score is 0.4, or 0 if the answer has no words.
- ``blocked``: a guardrail, filter or refusal of the model stopped the run. The score is 1.
- ``declined``: a person refused a tool call. The score is 1, unless the label is ``false_success``.

A run with a failed change scores 0.5 and passes if the answer asks how to continue, or if the agent hands over. A run
that admits the failure also scores 0.5 if one of the session's next three traces recovers (``recovered_by``). If one of
these traces answers a call without a result, the score is 1 (``continued_by``). If no call is a change and all calls
fail, they count like a failed change, unless every error reports a missing object.

A token declares the end if the instructions, a message or ``response.end_tokens`` name it. There is no score if the
root span did not end, or if the answer was not captured. The same holds if the answer is a token and no instructions
were captured, or if the user or the application stopped the run (``metadata.ending``: ``stopped``). If runs are
parallel, the worst run counts.

Source: ours. Other metrics find no fault in a run that crashed or stayed silent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from typing import Any

from pandaeval_collector.analysis.rules._canonical import has_outcome
from pandaeval_collector.analysis.rules._failures import (
    PARSED_UP_TO,
    FailureSign,
    as_object,
    error_of,
    failed,
    sign_in_text,
)
from pandaeval_collector.analysis.rules._verbs import computes, ends_run
from pandaeval_collector.analysis.rules.error_answers import raw_error
from pandaeval_collector.analysis.rules.failed_checks import CLAIM_WORDS, failed_check
from pandaeval_collector.analysis.rules.grounding.claims import arguments
from pandaeval_collector.analysis.rules.response_recovery import (
    FailureAccount,
    answering_span,
    changed_by,
    claims_in,
    failure_account,
    lost_at,
    open_call_key,
    was_to_change,
    wrong_calls,
)
from pandaeval_collector.analysis.rules.written_calls import written_call
from pandaeval_collector.analysis.stats.similarity import DEFAULT_WINDOW as WINDOW
from pandaeval_collector.base.score import Finding, Score, Unscored, Why
from pandaeval_collector.base.untrusted.foreign import plain_error
from pandaeval_collector.base.untrusted.silence import is_control, says_something
from pandaeval_collector.scoring.metric import SessionReads, TraceMetric
from pandaeval_otel.model import Kind, Span, ToolCall, Trace, Turn

HONEST = 0.4
"""The score of a run that admits its failure, or whose answer was cut off."""
ASKS_ON = 0.5
"""The score of a failed run that asks the user how to continue, or hands over."""
_RUN = frozenset({Kind.AGENT, Kind.WORKFLOW})
_RULING = ("system", "developer")
_SAID_AT_LEAST = 12
"""Minimum characters of an answer. Shorter texts may be equal by chance."""
_PLACEHOLDER = re.compile(r"[(\[<](?:empty|no) (?:response|answer|output|content|reply|message)[)\]>]", re.IGNORECASE)
"""Texts that applications show in place of an empty answer."""
_WORD = re.compile(r"[a-z]+")
_ALL = re.compile(r"\b(?:both|all|everything)\b(?! set)", re.IGNORECASE)
_SHORT_WORD, _STEM = 3, 5
_SHORT_VALUE, _MOST_VALUES = 3, 64


class Ending(StrEnum):
    ERROR = "error"
    EMPTY_ANSWER = "empty_answer"
    CONTROL_TOKEN = "control_token"  # noqa: S105 - a label
    DANGLING_TOOL_CALL = "dangling_tool_call"
    UNRECOVERED_TOOL_ERROR = "unrecovered_tool_error"
    FALSE_SUCCESS = "false_success"
    TRUNCATED = "truncated"
    BLOCKED = "blocked"
    DECLINED = "declined"
    STOPPED = "stopped"


def response(trace: Trace, end_tokens: Collection[str] = ()) -> Finding | None:
    """Return how the run ended; ``None`` without a request, or if the run continues elsewhere.

    ``end_tokens``: answers that declare the end.
    """
    if trace.forced or not (trace.complete or trace.fragment):
        return Unscored(Why.INCOMPLETE_TRACE, "the end of the root span was not received")
    if trace.runs:
        return _worst([response(run, end_tokens) for run in trace.runs])
    turn = trace.turns[-1] if trace.turns else None
    answer = trace.output if turn is None else turn.assistant
    if trace.blocked is not None:
        return _blocked(*trace.blocked)
    if trace.stopped:
        reason = f"the user or the application stopped the run: {_short(trace.stopped)}"
        return Unscored(Why.INCOMPLETE_TRACE, reason, {"ending": Ending.STOPPED.value})
    if trace.error is not None and not trace.truncated:
        if sign_in_text(trace.error) is FailureSign.DECLINED:
            return _declined(trace, answer) or _refused(None)
        return _crashed(trace, trace.error)
    if answer is None and turn is None and not trace.tool_calls:
        return None  # no request: work of a framework around its runs
    if answer is not None and (failure := _passed_off_error(trace, answer)) is not None:
        return _crashed(trace, failure.error or "", failure)
    if trace.ends_in_tool_call or answer is None:
        return _without_answer(trace, turn)
    return _of_answer(trace, turn, answer, end_tokens)


def _worst(findings: Sequence[Finding | None]) -> Finding | None:
    scores = [finding for finding in findings if isinstance(finding, Score)]
    if not scores:
        return next((finding for finding in findings if finding is not None), None)
    worst = min(scores, key=attrgetter("value"))
    if not worst.failed:
        return worst
    at = findings.index(worst) + 1
    return replace(worst, reason=f"{worst.reason} (run {at} of {len(findings)} in this trace)")


def _truncated(trace: Trace, score: float) -> Score:
    left = "" if score else ", and no words were left"
    reason = f"the answer was cut off at the model's token limit ({_short(trace.truncated)}){left}"
    return _bad(score, reason, Ending.TRUNCATED, span_ids=(answering_span(trace) or trace.root_span_id,))


def _declined(trace: Trace, answer: str | None) -> Score | None:
    refused = [trace.tool_calls[at] for at in lost_at(trace, FailureSign.DECLINED)]
    for call in reversed(refused):
        if answer is None or _of_failed(trace, call, answer)[1] is not Ending.FALSE_SUCCESS:
            continue
        reason = f"the answer claims success, but a person declined the call to {call.name}"
        spans = tuple(filter(None, (answering_span(trace) or call.span_id,)))
        return _bad(0.0, reason, Ending.FALSE_SUCCESS, tool=call.name, error=error_of(call), span_ids=spans)
    return _refused(refused[-1].name) if refused else None


def _refused(tool: str | None) -> Score:
    label = Ending.DECLINED.value
    reason = "a person declined " + (f"the call to {tool}" if tool else "a tool call")
    return Score(1.0, reason, {"ending": label, "tool": tool}, label=label)


def _blocked(guardrail: str, why: str) -> Score:
    reason = f"the run was blocked by {_short(guardrail)}" + (f" ({_short(why)})" if why else "")
    return Score(1.0, reason, {"ending": Ending.BLOCKED.value, "guardrail": guardrail}, label=Ending.BLOCKED.value)


def _of_answer(trace: Trace, turn: Turn | None, answer: str, end_tokens: Collection[str]) -> Finding | None:
    token = answer.strip()
    if token in end_tokens or (is_control(token) and _declares(trace, token, end_tokens)):
        return _lost(trace, None) or Score(1.0, f"the run ended with {_short(token)}")
    if not says_something(answer) or (_PLACEHOLDER.fullmatch(token) and not _declares(trace, token, end_tokens)):
        return _truncated(trace, 0.0) if trace.truncated else _silent(trace, turn, answer)
    if error := raw_error(answer, trace.input if turn is None else turn.user):
        at = (trace.root_span_id if turn is None or not turn.span_id else turn.span_id,)
        return _bad(0.0, f"the answer is a raw error: {_short(error)}", Ending.ERROR, error=error, span_ids=at)
    if name := written_call(trace, answer):
        at = (trace.root_span_id if turn is None or not turn.span_id else turn.span_id,)
        reason = f"the answer is the text of a call to {name}, and the call did not run"
        return _bad(0.0, reason, Ending.DANGLING_TOOL_CALL, tool=name, span_ids=at)
    lost = _unchecked(trace, answer) or _lost(trace, answer)
    if trace.truncated and (lost is None or not lost.failed):
        return _truncated(trace, HONEST)
    return lost or Score(1.0, "the run ended with an answer")


def _declares(trace: Trace, token: str, end_tokens: Collection[str]) -> bool:
    words = _words(token)
    return (
        any(words == _words(each) for each in end_tokens)
        or token in (trace.input or "")
        or any(token in (span.system or "") for span in trace.spans)
        or any(token in m.text for span in trace.spans for m in span.input or () if m.role in (*_RULING, "user"))
    )


def _words(token: str) -> str:
    return "".join(filter(str.isalpha, token.casefold()))


def _bad(
    score: float, reason: str, ending: Ending, tool: str = "", error: str = "", span_ids: tuple[str, ...] = ()
) -> Score:
    metadata: dict[str, object] = {"ending": ending.value, "tool": tool or None, "error": error or None}
    if ending in (Ending.UNRECOVERED_TOOL_ERROR, Ending.FALSE_SUCCESS):
        metadata["lost_tool"] = tool
    if ending is Ending.FALSE_SUCCESS:
        metadata["severity"] = "critical"
    if score >= ASKS_ON:
        return Score(score, reason, metadata, span_ids=span_ids)
    return Score(score, reason, metadata, label=ending.value, failed=True, span_ids=span_ids)


def _crashed(trace: Trace, error: str, at: Span | None = None) -> Score:
    tool = next((call for call in reversed(trace.tool_calls[-1:]) if failed(call)), None)
    spans = tuple(dict.fromkeys([trace.root_span_id if at is None else at.span_id, *([tool.span_id] if tool else [])]))
    cause = plain_error(error)
    shown = raw_error(trace.output or "", trace.input)  # the user received it; the error of a span can be less exact
    if shown and shown not in error and error not in shown:
        cause = f"{plain_error(shown)} ({cause})"
    if tool is None:
        reason = f"the run failed: {cause}" if cause else "the run failed without an error message"
        return _bad(0.0, reason, Ending.ERROR, error=cause, span_ids=spans)
    own = error_of(tool)
    why = f": {cause}" if cause and own and own not in error else ""
    cause = plain_error(own) if why else cause or plain_error(own)
    reason = f"{tool.name} failed: {cause or 'no error message'}; then the run failed{why}"
    return _bad(0.0, reason, Ending.ERROR, tool=tool.name, error=cause, span_ids=spans)


def _passed_off_error(trace: Trace, answer: str) -> Span | None:
    if not [span for span in trace.spans if span.error is not None]:
        return None
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    last = max(models, key=lambda span: (span.end_ns, span.start_ns), default=None)
    if last is None or last.error is None or len(answer.strip()) < _SAID_AT_LEAST:
        return None
    answer_text = answer.strip()
    heard = [message.text.strip() for span in models if span.error is None for message in span.output or ()]
    if any(span.output is None for span in models if span.error is None):
        return None  # a model's output was not captured; it can be the answer
    return None if any(text and (text in answer_text or answer_text in text) for text in heard) else last


def _without_answer(trace: Trace, turn: Turn | None) -> Finding | None:
    if trace.truncated:
        captured = any(span.output is not None for span in trace.spans if span.kind is Kind.LLM)
        return _truncated(trace, 0.0 if captured else HONEST)
    if ended := _ended_by_call(trace):
        return ended
    if not trace.ends_in_tool_call:
        if turn is not None and turn.media_only and turn.user is not None:
            return Score(1.0, "the run ended with an answer that is not text")
        return _lost(trace, None) or Unscored(Why.NO_CONTENT, "the answer was not captured")
    tool_spans = [span.span_id for span in trace.spans if span.kind is Kind.TOOL]
    if not tool_spans and not any(span.kind in _RUN for span in trace.spans):
        return None  # a single model call: its caller runs the tool, and calls the model again in another trace
    last = trace.tool_calls[-1] if trace.tool_calls else None
    if last is not None and not tool_spans and _leaves_call_to_caller(trace):
        return Score(1.0, f"the run ended, and its caller has to make the call to {last.name}", {"ended_by": last.name})
    if last is None or has_outcome(last) or last.span_id in tool_spans:
        return _lost(trace, None) or Unscored(
            Why.INSUFFICIENT_EVIDENCE, "the last captured step is a tool result; no answer was captured"
        )
    reason = f"the last call, {last.name}, has no result"
    bad = _bad(0.0, reason, Ending.DANGLING_TOOL_CALL, tool=last.name, span_ids=(last.span_id,))
    return replace(bad, metadata={**bad.metadata, "open_call": open_call_key(last)})


def _leaves_call_to_caller(trace: Trace) -> bool:
    root = next((span for span in trace.spans if span.span_id == trace.root_span_id), None)
    if root is None or root.kind not in _RUN or not root.output:
        return False
    return bool(root.output[-1].tool_requests) and not any(map(has_outcome, trace.tool_calls))


def _ended_by_call(trace: Trace) -> Finding | None:
    last = trace.tool_calls[-1] if trace.tool_calls else None
    if last is None or not ends_run(last.name) or failed(last):
        return None
    return Score(1.0, f"the run ended with a call to {last.name}", {"ended_by": last.name})


def _silent(trace: Trace, turn: Turn | None, answer: str) -> Finding | None:
    if ended := _ended_by_call(trace):
        return ended
    spans = (turn.span_id,) if turn is not None and turn.span_id else (trace.root_span_id,)
    if is_control(answer):
        spoken = (message.role in _RULING for span in trace.spans for message in span.input or ())
        if not any(span.system for span in trace.spans) and not any(spoken):
            token = _short(answer.strip())
            return Unscored(
                Why.INSUFFICIENT_EVIDENCE,
                f"the answer is only the token {token}; the instructions, which may define it, were not captured",
            )
        return _bad(
            0.0, f"the answer is a control token: {_short(answer.strip())}", Ending.CONTROL_TOKEN, span_ids=spans
        )
    asked = turn is not None and (says_something(turn.user) or turn.media_only)
    if asked:
        what = "only punctuation" if not says_something(answer) else "only a placeholder"
        how = f"{what} ({_short(answer.strip())})" if answer.strip() else "empty"
        return _bad(0.0, f"the answer to the user is {how}", Ending.EMPTY_ANSWER, span_ids=spans)
    if turn is not None and turn.user is not None:
        return None  # no message has words
    return Unscored(Why.NO_CONTENT, "the question was not captured, and the answer is empty")


def _lost(trace: Trace, answer: str | None) -> Score | None:
    lost = [trace.tool_calls[at] for at in lost_at(trace)]
    if not lost:
        return _declined(trace, answer)
    call = lost[-1]
    if answer is not None and any(map(str.isdigit, answer)) and all(computes(each.name) for each in lost):
        return None  # the answer states a result nevertheless, from another calculation
    score, ending, how = _of_failed(trace, call, answer)
    error = plain_error(error_of(call)).rstrip(".")
    cause = f"{call.name} failed" + (f": {error}" if error else "")
    reason = how.format(cause) if "{}" in how else f"{cause}; this run did not recover{how}"
    said_by = answering_span(trace) if ending is Ending.FALSE_SUCCESS else ""
    spans = (said_by,) if said_by else tuple(dict.fromkeys(each.span_id for each in lost if each.span_id))
    return _bad(score, reason, ending, tool=call.name, error=error, span_ids=spans)


def _unchecked(trace: Trace, answer: str) -> Score | None:
    call = failed_check(trace, answer) if any(word in answer.lower() for word in CLAIM_WORDS) else None
    if call is None:
        return None
    reason = f"the answer claims a passed check, but the last run of {call.name} failed"
    spans = tuple(filter(None, (answering_span(trace) or call.span_id,)))
    error = plain_error(error_of(call)).rstrip(".")
    return _bad(0.0, reason, Ending.FALSE_SUCCESS, tool=call.name, error=error, span_ids=spans)


def _of_failed(trace: Trace, call: ToolCall, answer: str | None) -> tuple[float, Ending, str]:
    account = FailureAccount.NOTHING if answer is None else failure_account(answer, bool(changed_by(trace)))
    if account is not FailureAccount.CLAIMED:
        at = next(place for place, each in enumerate(trace.tool_calls) if each is call)
        if any(ends_run(later.name) and not failed(later) for later in trace.tool_calls[at + 1 :]):
            return ASKS_ON, Ending.UNRECOVERED_TOOL_ERROR, "; the agent handed over"
    if account is FailureAccount.ASKED:
        return ASKS_ON, Ending.UNRECOVERED_TOOL_ERROR, "; the answer asks how to continue or hands over"
    if account is FailureAccount.ADMITTED:
        return HONEST, Ending.UNRECOVERED_TOOL_ERROR, "; the answer admits it"
    if account is FailureAccount.CLAIMED and was_to_change(trace, call) and _speaks_of(trace, call, answer or ""):
        return 0.0, Ending.FALSE_SUCCESS, "the answer claims success, but {}"
    return 0.0, Ending.UNRECOVERED_TOOL_ERROR, ""


def _speaks_of(trace: Trace, lost: ToolCall, answer: str) -> bool:
    """Return whether a claim is about a failed call. After other work, it needs a value or word of that call alone."""
    wrong = wrong_calls(trace)
    done = [call for at, call in enumerate(trace.tool_calls) if not wrong[at] and was_to_change(trace, call)]
    if not done:
        return True
    others = {value for call in done for held in (call.arguments, call.result) for value in _values(held)}
    own = {value for value in _values(lost.arguments) if value not in others}
    words = {word for call in done for word in _WORD.findall(call.name.lower())}
    own |= {word[:_STEM] for word in _WORD.findall(lost.name.lower()) if word not in words and len(word) > _SHORT_WORD}
    return any(_ALL.search(claim) or any(each in claim.lower() for each in own) for claim in claims_in(answer))


def _values(content: Any) -> list[str]:
    parsed = as_object(content) if isinstance(content, str) and len(content) <= PARSED_UP_TO else None
    texts = (str(leaf) for _, leaf in arguments(content if parsed is None else parsed))
    return [text[:PARSED_UP_TO].lower() for text in islice((t for t in texts if len(t) >= _SHORT_VALUE), _MOST_VALUES)]


def _short(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= 300 else f"{one_line[:300]}…"


METRIC = TraceMetric(
    name="response",
    kind="code",
    version="14",
    threshold=0.5,
    question="Did the run end with an answer or a declared end?",
    needs="a run that ended",
    evaluate=lambda trace, context: response(trace, context.end_tokens),
    reads=SessionReads(later=WINDOW),
    unscored=(Why.INCOMPLETE_TRACE, Why.NO_CONTENT, Why.INSUFFICIENT_EVIDENCE),
)

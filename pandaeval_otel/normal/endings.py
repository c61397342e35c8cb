"""Detects stopped, truncated, filtered or unusable answers from errors, finish reasons and interruption notices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects._values import as_dict, parsed
from pandaeval_otel.model import Kind, Span, Trace
from pandaeval_otel.model.raw import RawSpan

STOPPED, TRUNCATED, BLOCKED, UNUSABLE = "stopped", "truncated", "blocked", "unusable"
_REASON_KEYS = (
    *(semconv.FINISH_REASONS, "gen_ai.response.finish_reason", "ai.response.finishReason", "llm.finish_reason"),
    *("gen_ai.completion.0.finish_reason", "llm.response.finish_reason", "llm.response.stop_reason"),
)
_REASONS = {
    **dict.fromkeys(("aborted", "abort", "cancelled", "canceled", "cancel", "interrupted", "useraborted"), STOPPED),
    **dict.fromkeys(
        """
        length maxtokens maxtoken maxoutputtokens maxlength modellength maxcompletiontokens incomplete tokenlimit
        maxtokensreached tokenlimitreached modelcontextwindowexceeded contextlength errorlimit
        """.split(),  # noqa: SIM905 - a readable list of words
        TRUNCATED,
    ),
    **dict.fromkeys(
        """
        contentfilter contentfiltered guardrailintervened safety prohibitedcontent recitation blocklist spii
        imagesafety imageprohibitedcontent imagerecitation refusal refused errortoxic contentblocked blocked moderation
        modelarmor contentpolicyviolation policyviolation flagged
        """.split(),  # noqa: SIM905 - a readable list of words
        BLOCKED,
    ),
    **dict.fromkeys(("malformedfunctioncall", "unexpectedtoolcall", "toomanytoolcalls", "malformedresponse"), UNUSABLE),
}
"""The ending for each provider's finish reason, in lower-case letters only."""
_REFUSALS = frozenset({"refusal", "refused"})
_NO_LETTER = re.compile(r"[^a-z]")
_CANCELLED = re.compile(
    r"\b\w*(?:CancelledError|CanceledError|AbortError|GeneratorExit|KeyboardInterrupt|InterruptedException|"
    r"Cancell?edException|CancellationException|CancellationError|ClientDisconnect\w*|ERR_CANCELED|ABORT_ERR)\b"
    r"|\bcontext[. ]cancell?ed\b|\bcode = cancell?ed\b|\bStatusCode\.CANCELLED\b"
    r"|\b(?:task|operation|request|run|generation|stream|call|response) (?:was|has been|is) (?:cancell?ed|aborted)\b"
    r"|\bsignal is aborted\b|\b(?:cancell?ed|aborted|interrupted|stopped) by (?:the )?(?:user|client|cancel scope)\b"
    r"|\b(?:user|client) (?:cancell?ed|aborted|interrupted|stopped|disconnected)\b|\bclient closed request\b"
    r"|\A\W{0,3}(?:cancell?ed|aborted|interrupted)\W{0,3}\Z",
    re.IGNORECASE,
)
_TIMED_OUT = re.compile(r"time[ds]?[ _-]?out|deadline|max(?:imum)? duration", re.IGNORECASE)
_CUT_OFF = re.compile(r"LengthFinishReason|token limit\b.{0,40}\bexceeded before any response|IncompleteToolCall")
_NOTICE = re.compile(
    r"\W{0,3}(?:(?:request|response|generation|run|task|turn|operation|execution|message|output) (?:was )?)?"
    r"(?:interrupted|cancell?ed|aborted|stopped) by (?:the )?user(?: for tool use)?\W{0,3}",
    re.IGNORECASE,
)
_SPEAKS = frozenset({Kind.LLM, Kind.AGENT, Kind.WORKFLOW})
_LONGEST, _OF_ANSWER = 200, 200
"""Maximum length of a detail, and the length of the answer's end searched for a notice, in characters."""


def ending(trace: Trace, raws: Sequence[RawSpan]) -> tuple[str, str]:
    """Return how the run ended and its evidence, ``("", "")`` if regularly. A timeout is an error."""
    found = _by_error(trace.error, trace)
    if found[0]:
        return found
    turn = trace.turns[-1] if trace.turns else None
    last_text = (trace.output or "") if turn is None else turn.assistant or turn.user or ""
    if _NOTICE.fullmatch(last_text[-_OF_ANSWER:].strip().rpartition("\n")[2]):
        return STOPPED, last_text.strip()[-_LONGEST:]
    attributes = {raw.span_id: raw.attributes for raw in raws}
    ends = {span.span_id: end for span in trace.spans if (end := _own_end(span, attributes, trace))[0]}
    at = _speaker(trace) if ends else ""
    return ends.get(at) or ends.get(trace.root_span_id) or ("", "")


def _by_error(error: str | None, trace: Trace) -> tuple[str, str]:
    if error is None:
        return "", ""
    if _CUT_OFF.search(error):
        return TRUNCATED, error[:_LONGEST]
    late = any(span.error is not None and _TIMED_OUT.search(span.error) for span in trace.spans)
    if late or _CANCELLED.search(error) is None:
        return "", ""
    return STOPPED, error[:_LONGEST]


def _own_end(span: Span, attributes: Mapping[str, Mapping[str, Any]], trace: Trace) -> tuple[str, str]:
    if span.kind not in _SPEAKS:
        return "", ""
    if span.error is not None:
        return _by_error(span.error, trace)
    reason = span.output[-1].finish_reason if span.output else ""
    if not reason:
        reason = _stated(attributes.get(span.span_id, {}), is_captured=bool(span.output))
    return _kind_of(reason)


def _stated(attributes: Mapping[str, Any], *, is_captured: bool) -> str:
    stated = next(filter(None, map(attributes.get, _REASON_KEYS)), None)
    if stated is None and not is_captured:
        stated = _of_message(attributes)
    if isinstance(stated, list | tuple) and stated:
        stated = stated[-1]
    return str(stated or "")


@lru_cache(256)
def _kind_of(reason: str) -> tuple[str, str]:
    word = _NO_LETTER.sub("", reason.rpartition(".")[2].lower()).removeprefix("finishreason")
    return _REASONS.get(word, ""), reason[:_LONGEST]


def _of_message(attributes: Mapping[str, Any]) -> Any:
    messages = parsed(attributes.get(semconv.OUTPUT_MESSAGES))
    return as_dict(messages[-1]).get("finish_reason") if isinstance(messages, list) and messages else None


def _speaker(trace: Trace) -> str:
    models = [span for span in trace.spans if span.kind is Kind.LLM]
    answer = (trace.output or "").strip()
    if answer and any(span.output is not None for span in models):
        texts = [(span, [message.text.strip() for message in span.output or ()]) for span in models]
        models = [span for span, message_texts in texts if any(text and text in answer for text in message_texts)]
    return max(models, key=lambda span: (span.end_ns, span.start_ns)).span_id if models else ""


def blocked_for(reason: str) -> tuple[str, str]:
    """Return who blocked an answer with this finish reason, and why."""
    refused = _NO_LETTER.sub("", reason.lower()) in _REFUSALS
    return ("refusal of the model" if refused else "content filter of the provider"), reason


def side_by_side(trace: Trace) -> list[list[str]]:
    """Return the span ids per run if runs with different questions overlap, else ``[]``."""
    heads = [span for span in trace.spans if span.span_id in {turn.span_id for turn in trace.turns}]
    questions = {turn.user for turn in trace.turns}
    if len(heads) < 2 or not len(heads) == len(trace.turns) == len(questions) or None in questions:
        return []
    latest = 0
    for head in heads:  # in start order
        if head.start_ns < latest:
            break
        latest = max(latest, head.end_ns)
    else:
        return []
    owner = {head.span_id: head.span_id for head in heads}
    for span in trace.spans:
        owner.setdefault(span.span_id, owner.get(span.parent_id, ""))
    return [[id_ for id_, of in owner.items() if of == head.span_id] for head in heads]

"""A trace as a judge sees it: deterministic, within a token budget, evidence before prose.

Everything that came from the trace stands inside fences made of one nonce per (trace, evidence); what code counted
stands outside. The nonce is an HMAC under a secret of this store, so content cannot know it and cannot close a fence;
all calls about a trace share it, so their prompts begin with the same bytes and providers' prompt caches hit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pandaeval_collector.base.untrusted.value_text import as_text
from pandaeval_collector.judge.before import Before, before, joined
from pandaeval_collector.judge.facts import facts
from pandaeval_collector.judge.neutral import elided, fitting, neutral, tokens
from pandaeval_collector.judge.sections import EARLIER, FAILED, OURS, PromptSection, sections
from pandaeval_otel.model import Kind, Message, Span, Text, ToolCall, Trace

_VALUE_LIMITS = (6000, 2000, 700, 250, 100)
"""Longest argument or result, in characters: the first limit at which the whole pack fits is used."""
_TEXT_SHARE = 0.7
"""Characters per token of the budget that each text of a turn and each error may take before its middle is cut."""
_CONTEXT_SHARE = 0.4
"""Of the budget, for the conversation before the run; its newest part is shown."""
_WHOLE = 1 << 30
_LONGEST = 20_000
"""Characters of one text that are looked at: more than is ever shown."""
NONCE_DIGITS = 12
"""Of a fence: enough that nobody guesses it, and not as many as the code that an answer has to repeat; each digit is
paid for dozens of times."""


@dataclass(frozen=True, slots=True)
class Pack:
    """``text``: what goes into the prompt; ``digest``: 16 hex digits of it, without the nonce; ``cut``: what was left
    out, in words; ``truncated``: the parts of which something was left out, by their titles; ``tokens``: an estimate,
    never above the budget that was given; ``last_said``: the agent's last words before the run, neutral; ``outset``: so
    many characters of ``text`` tell what was there before the agent acted."""

    text: str
    nonce: str
    digest: str
    tokens: int
    cut: tuple[str, ...]
    last_said: str = ""
    outset: int = 0
    truncated: tuple[str, ...] = ()


def nonce(secret: bytes, trace_id: str, evidence: str) -> str:
    """Hex digits that only this store can make for this trace and evidence."""
    return hmac.new(secret, f"{trace_id}:{evidence}".encode(), hashlib.sha256).hexdigest()[:NONCE_DIGITS]


def pack(trace: Trace, secret: bytes, budget: int = 12_000, earlier: Sequence[str] = ()) -> Pack:
    """The pack of a trace within ``budget`` tokens (estimated). ``earlier``: what was said in the session before it,
    oldest first, for a trace whose spans do not tell. Pure; raises ``ValueError`` for a budget below 400."""
    if budget < 400:
        raise ValueError(f"a pack needs at least 400 tokens, not {budget}")
    fence = nonce(secret, trace.trace_id, trace.digest)
    clean, counted, known = cleaned(trace), facts(trace), _clean_before(joined(before(trace), earlier))
    text_limit = max(200, int(budget * _TEXT_SHARE))
    for limit in _VALUE_LIMITS:
        shown = sections(clean, counted, known, limit, text_limit, int(budget * _CONTEXT_SHARE))
        text = _render(shown, fence)
        if tokens(text) <= budget:
            found = _finish(shown, text, fence, (*_said(limit), *_left_out(shown)))
            break
    else:
        shown = _squeezed(shown, budget, fence)
        found = _finish(shown, _render(shown, fence), fence, (*_said(limit), "some of the record was left out"))
    whole = sections(clean, counted, known, _WHOLE, _WHOLE, _WHOLE)
    return replace(found, last_said=known.last_said, truncated=_truncated(shown, whole))


def _truncated(shown: Sequence[PromptSection], whole: Sequence[PromptSection]) -> tuple[str, ...]:
    """The names of the parts that say less than they would if there were room for all."""
    return tuple(
        _name(each.title) for each, complete in zip(shown, whole, strict=True) if not _is_whole(each, complete)
    )


def _is_whole(shown: PromptSection, complete: PromptSection) -> bool:
    """Blocks that were squeezed into one are shorter wherever something is missing."""
    if len(shown.blocks) == 1 < len(complete.blocks):
        return len(shown.blocks[0]) == sum(map(len, complete.blocks)) + 2 * (len(complete.blocks) - 1)
    return shown.blocks == complete.blocks


def _name(title: str) -> str:
    """A title without what is explained in it: ``what happened``."""
    return title.partition(" (")[0].partition(",")[0].lower()


def _left_out(shown: Sequence[PromptSection]) -> tuple[str, ...]:
    missing = any(EARLIER in section.blocks[0] for section in shown if section.blocks)
    return ("the beginning of the conversation before this run was left out",) if missing else ()


def _clean_before(known: Before) -> Before:
    told, said = tuple(map(_clean, known.instructions)), tuple(map(_clean, known.said))
    return Before(told, said, _clean(known.last_said), missing=known.missing)


def cleaned(trace: Trace) -> Trace:
    """A trace whose texts are neutral, and cut to what a pack can show of them at most."""
    return replace(
        trace,
        agent=_clean(trace.agent),
        error=None if trace.error is None else _clean(trace.error),
        turns=tuple(
            replace(t, user=t.user and _clean(t.user), assistant=t.assistant and _clean(t.assistant))
            for t in trace.turns
        ),
        tool_calls=tuple(_clean_call(call) for call in trace.tool_calls),
        tools=tuple(replace(t, name=_clean(t.name), description=_clean(t.description)) for t in trace.tools),
        reasoning=tuple(_clean(text) for text in trace.reasoning),
        spans=tuple(_clean_span(span) for span in trace.spans),
    )


def _clean_span(span: Span) -> Span:
    """What is shown of a span: documents that a retrieval found, and what a model said. Others pass as they are."""
    if span.documents:
        return replace(span, name=_clean(span.name), documents=tuple(_clean(as_text(each)) for each in span.documents))
    if span.kind is Kind.LLM and span.output:
        return replace(span, output=tuple(_clean_message(each) for each in span.output))
    return span


def _clean_message(message: Message) -> Message:
    parts = (replace(part, text=_clean(part.text)) if isinstance(part, Text) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def _clean_call(call: ToolCall) -> ToolCall:
    return replace(
        call,
        name=_clean(call.name),
        agent=_clean(call.agent),
        arguments=_clean(as_text(call.arguments)),
        result=None if call.result is None else _clean(as_text(call.result)),
        error=None if call.error is None else _clean(call.error),
    )


def _clean(text: str) -> str:
    """Neutral; of a text that is far too long, the ends alone are looked at."""
    return neutral(text) if len(text) <= 2 * _LONGEST else neutral(elided(text, _LONGEST))


def _squeezed(shown: Sequence[PromptSection], budget: int, fence: str) -> list[PromptSection]:
    """One block a section, each within its share of what the fences leave."""
    room = budget - tokens(_render([replace(each, blocks=("",)) for each in shown], fence)) - len(shown)
    shares = sum(each.share for each in shown)
    return [replace(each, blocks=(_within(each.blocks, room * each.share // shares),)) for each in shown]


def _within(blocks: Sequence[str], most: int) -> str:
    """The first and the last block, and of the others as many as fit, failed calls first, then the latest."""
    joined = "\n\n".join(blocks)
    if len(blocks) < 3 or tokens(joined) <= most:
        return fitting(joined, most)
    last = fitting(blocks[-1], most // 2)
    first = fitting(blocks[0], max(0, most - tokens(last) - 16))
    room = most - tokens(first) - tokens(last) - 16
    kept: set[int] = set()
    middle = range(len(blocks) - 2, 0, -1)
    for index in sorted(middle, key=lambda index: (FAILED not in blocks[index], -index)):
        size = tokens(blocks[index]) + 1
        if size > room:
            break
        room -= size
        kept.add(index)
    shown = [blocks[index] for index in sorted(kept)]
    return fitting("\n\n".join([first, f"(… {len(middle) - len(kept)} left out …)", *shown, last]), most)


def _render(shown: Sequence[PromptSection], fence: str) -> str:
    """What is of the trace between two lines that hold the nonce; inside, the nonce cannot occur."""
    parts = []
    for number, section in enumerate(shown, 1):
        blocks = ("\n\n".join(section.blocks),) if section.together else section.blocks
        fenced = (each if section.ours or each in OURS else _fenced(each, fence) for each in blocks)
        parts.append("\n".join([f"## {number}. {section.title}", *fenced]))
    return "\n\n".join(parts)


def _fenced(block: str, fence: str) -> str:
    return f"<<{fence}>>\n{block.replace(fence, '[…]')}\n<</{fence}>>"


def _finish(shown: Sequence[PromptSection], text: str, fence: str, cut: tuple[str, ...]) -> Pack:
    content = json.dumps([[section.title, section.blocks] for section in shown], ensure_ascii=False)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()
    before = next((at for at, section in enumerate(shown) if not section.outset), len(shown))
    return Pack(text, fence, digest, tokens(text), cut, outset=len(_render(shown[:before], fence)))


def _said(limit: int) -> tuple[str, ...]:
    if limit == _VALUE_LIMITS[0]:
        return ()
    return (f"arguments and results longer than {limit} characters were cut in their middle",)

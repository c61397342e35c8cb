"""A trace as a judge sees it: deterministic, within a token budget, evidence before prose.

Everything that came from the trace stands inside fences made of one nonce per (trace, evidence). The nonce is an HMAC
under a secret of this store, so content cannot know it and cannot close a fence; all calls about a trace share it, so
their prompts begin with the same bytes and providers' prompt caches hit.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pandaeval_collector.judge.neutral import elided, fitting, neutral, one_line, tokens
from pandaeval_otel.model import Kind, Span, ToolCall, Trace

_VALUE_LIMITS = (6000, 2000, 700, 250, 100)
"""Longest argument or result, in characters: the first limit at which the whole pack fits is used."""
_TEXT_SHARE = 0.7
"""Characters per token of the budget that each text of a turn and each error may take before its middle is cut."""
_SHARES = (0.25, 0.05, 0.3, 0.1, 0.05, 0.25)
"""How sections share a budget that is too small for all: task, steps and answer before the rest."""
_MAX_TOOLS = 60
_MAX_DOCUMENTS = 20
_LONGEST = 20_000
"""Characters of one text that are looked at: more than is ever shown."""
_FAILED = "FAILED:"


@dataclass(frozen=True, slots=True)
class Pack:
    """``text``: what goes into the prompt; ``digest``: 16 hex digits of it, without the nonce; ``cut``: what was left
    out, in words; ``tokens``: an estimate, never above the budget that was given."""

    text: str
    nonce: str
    digest: str
    tokens: int
    cut: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    blocks: tuple[str, ...]


def nonce(secret: bytes, trace_id: str, evidence: str) -> str:
    """32 hex digits that only this store can make for this trace and evidence."""
    return hmac.new(secret, f"{trace_id}:{evidence}".encode(), hashlib.sha256).hexdigest()[:32]


def pack(trace: Trace, secret: bytes, budget: int = 12_000) -> Pack:
    """The pack of a trace within ``budget`` tokens (estimated). Pure; raises ``ValueError`` for a budget below 400."""
    if budget < 400:
        raise ValueError(f"a pack needs at least 400 tokens, not {budget}")
    fence = nonce(secret, trace.trace_id, trace.digest)
    clean = cleaned(trace)
    text_limit = max(200, int(budget * _TEXT_SHARE))
    for limit in _VALUE_LIMITS:
        sections = _sections(clean, limit, text_limit)
        text = _render(sections, fence)
        if tokens(text) <= budget:
            return _finish(sections, text, fence, _said(limit))
    squeezed = _squeezed(sections, budget, fence)
    return _finish(squeezed, _render(squeezed, fence), fence, (*_said(limit), "some of the record was left out"))


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
    """Only what a retrieval found is shown of a span; all others pass as they are."""
    if not span.documents:
        return span
    return replace(span, name=_clean(span.name), documents=tuple(_clean(_text(each)) for each in span.documents))


def _clean_call(call: ToolCall) -> ToolCall:
    return replace(
        call,
        name=_clean(call.name),
        agent=_clean(call.agent),
        arguments=_clean(_text(call.arguments)),
        result=None if call.result is None else _clean(_text(call.result)),
        error=None if call.error is None else _clean(call.error),
    )


def _clean(text: str) -> str:
    """Neutral; of a text that is far too long, the ends alone are looked at."""
    return neutral(text) if len(text) <= 2 * _LONGEST else neutral(elided(text, _LONGEST))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _squeezed(sections: Sequence[_Section], budget: int, fence: str) -> list[_Section]:
    """One block a section, each within its share of what the fences leave."""
    empty = [_Section(section.title, ("",)) for section in sections]
    room = budget - tokens(_render(empty, fence)) - len(sections)
    return [
        _Section(section.title, (_within(section.blocks, int(room * share)),))
        for section, share in zip(sections, _SHARES, strict=True)
    ]


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
    for index in sorted(middle, key=lambda index: (_FAILED not in blocks[index], -index)):
        size = tokens(blocks[index]) + 1
        if size > room:
            break
        room -= size
        kept.add(index)
    shown = [blocks[index] for index in sorted(kept)]
    return fitting("\n\n".join([first, f"(… {len(middle) - len(kept)} left out …)", *shown, last]), most)


def _sections(trace: Trace, limit: int, text_limit: int) -> list[_Section]:
    return [
        _Section("WHAT THE USER ASKED", tuple(_texts((turn.user for turn in trace.turns), text_limit))),
        _Section("TOOLS THAT THE AGENT HAD", tuple(_tools(trace))),
        _Section("WHAT HAPPENED, IN ORDER (recorded by the instrumentation)", tuple(_steps(trace, limit, text_limit))),
        _Section("FACTS COUNTED BY CODE", (_facts(trace),)),
        _Section("THE AGENT'S OWN THOUGHTS (claims, not evidence)", tuple(_texts(trace.reasoning, limit))),
        _Section("WHAT THE AGENT ANSWERED", tuple(_texts((turn.assistant for turn in trace.turns), text_limit))),
    ]


def _texts(texts: Iterable[str | None], limit: int) -> Iterable[str]:
    said = [elided(text, limit) for text in texts if text]
    return said or ["(nothing was captured)"]


def _tools(trace: Trace) -> Iterable[str]:
    if not trace.tools:
        return ["(no tool definitions were captured)"]
    lines = [
        f"{elided(one_line(tool.name), 100)}: {elided(one_line(tool.description), 200)}"
        for tool in trace.tools[:_MAX_TOOLS]
    ]
    if len(trace.tools) > _MAX_TOOLS:
        lines.append(f"(… and {len(trace.tools) - _MAX_TOOLS} more)")
    return ["\n".join(lines)]


def _steps(trace: Trace, limit: int, text_limit: int) -> Iterable[str]:
    calls = trace.tool_calls
    steps = [(call.start_ns, _step(index, call, calls, limit, text_limit)) for index, call in enumerate(calls)]
    found = [(span.start_ns, _retrieval(span, limit)) for span in trace.spans if _retrieved(span)]
    if found:
        steps = sorted([*steps, *found], key=lambda step: step[0])
    if not calls:
        steps.append((0, "(no tool was called)"))
    if trace.error is not None:
        steps.append((0, f"the run ended with this error: {elided(one_line(trace.error), text_limit)}"))
    return [step for _, step in steps]


def _retrieved(span: Span) -> bool:
    return span.kind is Kind.RETRIEVAL and bool(span.documents)


def _retrieval(span: Span, limit: int) -> str:
    shown = [f"- {elided(one_line(each), limit)}" for each in span.documents[:_MAX_DOCUMENTS]]
    if len(span.documents) > _MAX_DOCUMENTS:
        shown.append(f"(… and {len(span.documents) - _MAX_DOCUMENTS} more)")
    return "\n".join([f"documents found by {elided(one_line(span.name), 200)}:", *shown])


def _step(index: int, call: ToolCall, calls: Sequence[ToolCall], limit: int, text_limit: int) -> str:
    """Names, arguments and errors stay on one line each, and the result comes last: no line of theirs can pass for
    another part of the step."""
    parallel = any(o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns for o in _near(calls, index))
    head = f"call {index + 1}: {elided(one_line(call.name), 200)}"
    if call.agent:
        head += f" by agent {elided(one_line(call.agent), 200)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    shown = elided(one_line(call.arguments), limit) if call.has_arguments else "(not captured)"
    lines = [head, f"arguments: {shown}"]
    if call.error is not None:
        lines.append(f"{_FAILED} {elided(one_line(call.error), text_limit)}")
    if call.has_result and call.result is not None:
        lines.append(f"result: {elided(call.result, limit)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return "\n".join(lines)


def _near(calls: Sequence[ToolCall], index: int) -> Sequence[ToolCall]:
    return calls[max(0, index - 2) : index + 3]


def _facts(trace: Trace) -> str:
    """Numbers and words of ours alone: a text of the trace could add facts of its own."""
    failed = [index + 1 for index, call in enumerate(trace.tool_calls) if call.error is not None]
    lines = [
        f"tool calls: {len(trace.tool_calls)}",
        f"failed tool calls: {len(failed)}" + (f" (calls {', '.join(map(str, failed[:20]))})" if failed else ""),
        f"model calls: {trace.llm_calls}",
        f"the run ended: {'with an error' if trace.error is not None else 'without an error'}",
        f"the last answer: {_answer_state(trace)}",
        f"the trace is complete: {'yes' if trace.complete else 'no'}",
    ]
    if any("cut short" in note for note in trace.notes):
        lines.append("some of the texts were cut short before they were recorded")
    if trace.dropped_attributes:
        lines.append(f"fields that were lost before they were recorded: {trace.dropped_attributes}")
    return "\n".join(lines)


def _answer_state(trace: Trace) -> str:
    if trace.output is None:
        return "not captured"
    return f"{len(trace.output)} characters" if trace.output.strip() else "empty"


def _render(sections: Sequence[_Section], fence: str) -> str:
    """Each block between two lines that hold the nonce; inside, the nonce cannot occur."""
    parts = []
    for number, section in enumerate(sections, 1):
        blocks = "\n".join(f"<<{fence}>>\n{block.replace(fence, '[…]')}\n<</{fence}>>" for block in section.blocks)
        parts.append(f"## {number}. {section.title}\n{blocks}")
    return "\n\n".join(parts)


def _finish(sections: Sequence[_Section], text: str, fence: str, cut: tuple[str, ...]) -> Pack:
    content = json.dumps([[section.title, section.blocks] for section in sections], ensure_ascii=False)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return Pack(text, fence, digest, tokens(text), cut)


def _said(limit: int) -> tuple[str, ...]:
    if limit == _VALUE_LIMITS[0]:
        return ()
    return (f"arguments and results longer than {limit} characters were cut in their middle",)

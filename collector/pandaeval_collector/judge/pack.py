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
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.judge.neutral import elided, neutral, tokens
from pandaeval_otel.model import ToolCall, Trace

_VALUE_LIMITS = (6000, 2000, 700, 250, 100)
"""Longest argument or result, in characters: the first limit at which the whole pack fits is used."""
_TEXT_SHARE = 0.35
"""The share of the budget that task, final output and the errors may each take before their own middle is cut."""
_MAX_TOOLS = 60


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
    room = budget * 4
    text_limit = max(200, int(room * _TEXT_SHARE / 4))
    for limit in _VALUE_LIMITS:
        sections = _sections(trace, limit, text_limit)
        text = _render(sections, fence)
        if tokens(text) <= budget:
            return _finish(sections, text, fence, _said(limit, 0))
    sections, dropped = _without_middle(trace, _VALUE_LIMITS[-1], text_limit, budget, fence)
    return _finish(sections, _render(sections, fence), fence, _said(_VALUE_LIMITS[-1], dropped))


def _without_middle(trace: Trace, limit: int, text_limit: int, budget: int, fence: str) -> tuple[list[_Section], int]:
    """Steps are dropped from the middle, errors last; then the texts themselves are cut until all fits."""
    calls = list(trace.tool_calls)
    keep = len(calls)
    while True:
        sections = _sections(trace, limit, text_limit, keep)
        if tokens(_render(sections, fence)) <= budget:
            return sections, len(calls) - keep
        if keep > 2:
            keep = max(2, keep * 2 // 3)
        elif text_limit > 40:
            text_limit = text_limit * 2 // 3
        else:
            limit, keep = 40, 0
            sections = [_sections(trace, limit, text_limit, keep)[0], *_sections(trace, limit, text_limit, keep)[-2:]]
            return sections, len(calls)


def _sections(trace: Trace, limit: int, text_limit: int, keep: int | None = None) -> list[_Section]:
    return [
        _Section("WHAT THE USER ASKED", tuple(_texts((turn.user for turn in trace.turns), text_limit))),
        _Section("TOOLS THAT THE AGENT HAD", tuple(_tools(trace))),
        _Section(
            "WHAT HAPPENED, IN ORDER (recorded by the instrumentation)", tuple(_steps(trace, limit, text_limit, keep))
        ),
        _Section("FACTS COUNTED BY CODE", (_facts(trace),)),
        _Section("THE AGENT'S OWN THOUGHTS (claims, not evidence)", tuple(_texts(trace.reasoning, limit))),
        _Section("WHAT THE AGENT ANSWERED", tuple(_texts((turn.assistant for turn in trace.turns), text_limit))),
    ]


def _texts(texts: Iterable[str | None], limit: int) -> Iterable[str]:
    said = [elided(neutral(text), limit) for text in texts if text]
    return said or ["(nothing was captured)"]


def _tools(trace: Trace) -> Iterable[str]:
    if not trace.tools:
        return ["(no tool definitions were captured)"]
    lines = [f"{neutral(tool.name)}: {elided(neutral(tool.description), 200)}" for tool in trace.tools[:_MAX_TOOLS]]
    if len(trace.tools) > _MAX_TOOLS:
        lines.append(f"(… and {len(trace.tools) - _MAX_TOOLS} more)")
    return ["\n".join(lines)]


def _steps(trace: Trace, limit: int, text_limit: int, keep: int | None) -> Iterable[str]:
    calls = trace.tool_calls
    if not calls:
        return ["(no tool was called)"]
    shown = _kept(calls, keep)
    blocks: list[str] = []
    gap = 0
    for index, call in enumerate(calls):
        if index not in shown:
            gap += 1
            continue
        if gap:
            blocks.append(f"(… {gap} calls are left out here …)")
            gap = 0
        blocks.append(_step(index, call, calls, limit, text_limit))
    if gap:
        blocks.append(f"(… {gap} calls are left out here …)")
    return blocks


def _kept(calls: Sequence[ToolCall], keep: int | None) -> set[int]:
    """The first and last calls, and those that failed as far as there is room."""
    count = len(calls)
    if keep is None or keep >= count:
        return set(range(count))
    failed = [index for index, call in enumerate(calls) if call.error is not None][: keep // 2]
    rest = max(0, keep - len(failed))
    ends = [*range((rest + 1) // 2), *range(count - rest // 2, count)]
    return {*failed, *ends}


def _step(index: int, call: ToolCall, calls: Sequence[ToolCall], limit: int, text_limit: int) -> str:
    parallel = any(o is not call and o.start_ns < call.end_ns and call.start_ns < o.end_ns for o in _near(calls, index))
    head = f"call {index + 1}: {neutral(call.name)}"
    if call.agent:
        head += f" by agent {neutral(call.agent)}"
    if parallel:
        head += " (in parallel with a neighbour)"
    lines = [head, f"arguments: {_value(call.arguments, limit) if call.has_arguments else '(not captured)'}"]
    if call.error is not None:
        lines.append(f"FAILED: {elided(neutral(call.error), text_limit)}")
    if call.has_result and call.result is not None:
        lines.append(f"result: {_value(call.result, limit)}")
    elif call.error is None:
        lines.append("result: (not captured)")
    return "\n".join(lines)


def _near(calls: Sequence[ToolCall], index: int) -> Sequence[ToolCall]:
    return calls[max(0, index - 2) : index + 3]


def _value(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return elided(neutral(text), limit)


def _facts(trace: Trace) -> str:
    failed = [index + 1 for index, call in enumerate(trace.tool_calls) if call.error is not None]
    lines = [
        f"tool calls: {len(trace.tool_calls)}",
        f"failed tool calls: {len(failed)}" + (f" (calls {', '.join(map(str, failed[:20]))})" if failed else ""),
        f"model calls: {trace.llm_calls}",
        f"the run ended: {'with an error' if trace.error is not None else 'without an error'}",
        f"the trace is complete: {'yes' if trace.complete else 'no'}",
    ]
    if trace.error is not None:
        lines.append(f"error of the run: {elided(neutral(trace.error), 500)}")
    return "\n".join(lines)


def _render(sections: Sequence[_Section], fence: str) -> str:
    """Each block between two lines that hold the nonce; inside, the nonce cannot occur."""
    parts = []
    for number, section in enumerate(sections, 1):
        blocks = "\n".join(f"<<{fence}>>\n{block.replace(fence, '')}\n<</{fence}>>" for block in section.blocks)
        parts.append(f"## {number}. {section.title}\n{blocks}")
    return "\n\n".join(parts)


def _finish(sections: Sequence[_Section], text: str, fence: str, cut: tuple[str, ...]) -> Pack:
    content = json.dumps([[section.title, section.blocks] for section in sections], ensure_ascii=False)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return Pack(text, fence, digest, tokens(text), cut)


def _said(limit: int, dropped: int) -> tuple[str, ...]:
    cut = []
    if limit < _VALUE_LIMITS[0]:
        cut.append(f"arguments and results longer than {limit} characters were cut in their middle")
    if dropped:
        cut.append(f"{dropped} tool calls were left out of the middle")
    return tuple(cut)

"""Sections of a judge's record: evidence before prose, claims named as claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pandaeval_collector.judge.context import EarlierTurns, media_asked
from pandaeval_collector.judge.run_facts import CallFacts
from pandaeval_collector.judge.schemas import signature
from pandaeval_collector.judge.shorten import elided, tokens
from pandaeval_collector.judge.steps import NOTHING, OwnWords, StepLimits, clock, last_answer, message, steps
from pandaeval_otel.model import Trace


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A titled part of the record.

    ``blocks``: fenced separately, or ``together``. ``ours``: unfenced, without trace text. ``share``: weight in a small
    budget. ``outset``: precedes the agent's actions.
    """

    title: str
    blocks: tuple[str, ...]
    share: int
    together: bool = False
    ours: bool = False
    outset: bool = False


def agent_sections(trace: Trace, known: EarlierTurns, limits: StepLimits) -> list[PromptSection]:
    """Make the sections shared by an agent's runs: instructions and tools, sanitized."""
    return [
        _instructions(known, limits),
        PromptSection("TOOLS THAT THE AGENT HAD", (_tools(trace, limits),), 5, outset=True),
    ]


def run_sections(trace: Trace, facts: CallFacts, known: EarlierTurns, limits: StepLimits) -> list[PromptSection]:
    """Make a run's sections, ``facts`` and ``known`` context, sanitized. The date is last, for prompt caches."""
    found = [*_context(known, limits)]
    several = len(trace.turns) > 1
    if not several:
        found.append(
            PromptSection("WHAT THE USER ASKED", tuple(_asked(trace, limits)) or (OwnWords(NOTHING),), 25, outset=True)
        )
    order = "TURN BY TURN, IN ORDER" if several else "IN ORDER"
    title = f"WHAT HAPPENED, {order} (calls and results are evidence; what the agent thought and said is claims)"
    found.append(PromptSection(title, tuple(steps(trace, facts, limits)), 70 if several else 30))
    found.append(PromptSection("FACTS COUNTED BY CODE", (facts.text,), 10, ours=True))
    if not several:
        found.append(PromptSection("WHAT THE AGENT ANSWERED", (message("", last_answer(trace), limits),), 25))
    began = clock(trace.start_ns) or "(not captured)"
    return [*found, PromptSection("WHEN THE RUN BEGAN", (began,), 4, ours=True, outset=True)]


def _instructions(known: EarlierTurns, limits: StepLimits) -> PromptSection:
    title = "THE AGENT'S INSTRUCTIONS"
    if not known.instructions:
        return PromptSection(title, (OwnWords("(no instructions were captured)"),), 4, outset=True)
    instructions = tuple(elided(text, limits.text) for text in known.instructions)
    return PromptSection(f"{title} (context: refusing what they forbid is right)", instructions, 8, outset=True)


def _context(known: EarlierTurns, limits: StepLimits) -> Iterator[PromptSection]:
    if known.said:
        title = "THE CONVERSATION BEFORE THIS RUN, OLDEST FIRST (context: true for this run, and not judged)"
        recent_texts = tuple(recent(known.said, limits.value, limits.context, known.missing))
        yield PromptSection(title, recent_texts, 20, together=True, outset=True)


def _asked(trace: Trace, limits: StepLimits) -> list[str]:
    asked = [turn for turn in trace.turns if turn.user is not None or turn.media_only]
    texts = [message("", turn.user, limits, turn.media_only) for turn in asked]
    if len(asked) == 1 and asked[0].user:
        kinds = (limits.line(kind, limits.text) or "something that is no text" for kind in media_asked(trace))
        texts += [f"(with {kind}, not shown)" for kind in kinds]
    return texts


def _tools(trace: Trace, limits: StepLimits) -> str:
    if not trace.tools:
        return OwnWords("(no tool definitions were captured)")
    lines = []
    for tool in trace.tools[: limits.listed]:
        owner = f"agent {limits.line(', '.join(tool.agents), limits.tool)} had " if tool.agents else ""
        parameters = signature(tool.parameters, 4 * limits.tool)
        description = limits.line(tool.description, limits.tool)
        lines.append(f"{owner}{limits.line(tool.name, limits.tool)}{parameters}: {description}")
    if len(trace.tools) > limits.listed:
        others = ", ".join(limits.line(tool.name, limits.tool) for tool in trace.tools[limits.listed :])
        lines.append(f"(… and {len(trace.tools) - limits.listed} more: {elided(others, 10 * limits.tool)})")
    return "\n".join(lines)


def recent(texts: Sequence[str], limit: int, room: int, missing: int = 0) -> list[str]:
    """Return the newest texts within ``room`` tokens, each up to ``limit`` characters, after a note of omissions."""
    kept: list[str] = []
    for each in reversed(texts):
        shown = elided(each, limit)
        room -= tokens(shown) + 1
        if room < 0:
            break
        kept.append(shown)
    missing += len(texts) - len(kept)
    return [*([f"({missing} earlier messages and results left out)"] if missing else []), *reversed(kept)]

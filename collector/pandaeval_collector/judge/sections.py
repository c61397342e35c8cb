"""What a trace says, in the order in which a judge should read it: evidence before prose, claims called so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pandaeval_collector.judge.before import EarlierTurns, media_asked
from pandaeval_collector.judge.neutral import elided, neutral, one_line, tokens
from pandaeval_collector.judge.steps import CallFacts, OwnWords, StepLimits, clock, steps
from pandaeval_otel.model import Trace

_NOTHING = OwnWords("(nothing was captured)")
_NO_TEXT = OwnWords("(something that is no text, such as an image: not shown)")
EARLIER = "earlier messages and results left out"
_LONGEST = 400
_DEEPEST = 6
"""Schemas within schemas that are read."""


@dataclass(frozen=True, slots=True)
class PromptSection:
    """A titled part of the record. ``blocks`` are fenced one by one; ``together``: all in one fence; ``ours``: not at
    all, as they hold no word of the trace. ``share``: its weight in a budget that is too small for all. ``outset``: it
    describes the time before the agent acted; such sections stand first."""

    title: str
    blocks: tuple[str, ...]
    share: int
    together: bool = False
    ours: bool = False
    outset: bool = False


def sections(trace: Trace, facts: CallFacts, known: EarlierTurns, limits: StepLimits) -> list[PromptSection]:
    """Makes the sections from a trace with neutral texts, the ``facts`` of the original, and what was ``known`` before
    it, also neutral. Task, steps and answer have the largest shares; with several turns the steps, which then hold all
    answers but the last."""
    several = len(trace.turns) > 1
    asked = [(at, turn) for at, turn in enumerate(trace.turns, 1) if turn.user or turn.media_only]
    texts = [
        _turn(trace, at) + elided(turn.user, limits.text) if turn.user else OwnWords(_turn(trace, at) + _NO_TEXT)
        for at, turn in asked
    ]
    if len(asked) == 1 and asked[0][1].user:
        texts += [f"(with {modality or 'something that is no text'}, not shown)" for modality in media_asked(trace)]
    told = tuple(elided(each, limits.text) for each in known.instructions)
    title = "THE AGENT'S INSTRUCTIONS (context: what they forbid is rightly refused)"
    none = (OwnWords("(no instructions were captured)"),)
    context = [PromptSection(title, told or none, 8 if told else 4, outset=True)]
    if known.said:
        title = "THE CONVERSATION BEFORE THIS RUN, OLDEST FIRST (context: true for this run, and not judged)"
        said = tuple(recent(known.said, limits.value, limits.context, known.missing))
        context.append(PromptSection(title, said, 20, together=True, outset=True))
    signatures = [
        f"{elided(one_line(tool.name), limits.tool)}{signature(tool.parameters, 2 * limits.tool)}: "
        f"{elided(one_line(tool.description), limits.tool)}"
        for tool in trace.tools[: limits.listed]
    ]
    if len(trace.tools) > limits.listed:
        signatures.append(f"(… and {len(trace.tools) - limits.listed} more)")
    tools = "\n".join(signatures) if signatures else OwnWords("(no tool definitions were captured)")
    last = trace.turns[-1].assistant if trace.turns else None
    answer = _turn(trace, len(trace.turns)) + elided(last, limits.text) if last else _NOTHING
    return [
        PromptSection("WHEN THE RUN BEGAN", (clock(trace.start_ns) or "(not captured)",), 4, ours=True, outset=True),
        *context,
        PromptSection("WHAT THE USER ASKED", tuple(texts) or (_NOTHING,), 25, outset=True),
        PromptSection("TOOLS THAT THE AGENT HAD", (tools,), 5, outset=True),
        PromptSection(
            f"WHAT HAPPENED, {'TURN BY TURN, ' if several else ''}IN ORDER (calls and results are evidence; what the "
            "agent thought and said is claims)",
            tuple(steps(trace, facts, limits)),
            50 if several else 30,
        ),
        PromptSection("FACTS COUNTED BY CODE", (facts.text,), 10, ours=True),
        PromptSection("WHAT THE AGENT ANSWERED", (answer,), 15 if several else 25),
    ]


def recent(said: Sequence[str], limit: int, room: int, missing: int = 0) -> list[str]:
    """Returns the newest texts that ``room`` tokens hold, each of at most ``limit`` characters, after a note of how
    many are missing; ``missing``: how many already were."""
    kept: list[str] = []
    for each in reversed(said):
        shown = elided(each, limit)
        room -= tokens(shown) + 1
        if room < 0:
            break
        kept.append(shown)
    missing += len(said) - len(kept)
    return [*([f"({missing} {EARLIER})"] if missing else []), *reversed(kept)]


def _turn(trace: Trace, number: int) -> str:
    """Returns the number of a turn as a prefix, ``""`` in a trace with only one turn."""
    return f"turn {number}: " if len(trace.turns) > 1 else ""


def signature(schema: Any, most: int = _LONGEST) -> str:
    """Describes the parameters in a tool's JSON schema, ``""`` without any: at most about ``most`` characters, neutral
    and on one line, as names and values are the trace's words."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return ""
    required = schema.get("required")
    wanted = frozenset(map(str, required)) if isinstance(required, list) else frozenset()
    shown = [f"{name}: {_kind(each)}{'' if str(name) in wanted else ', optional'}" for name, each in properties.items()]
    return elided(one_line(neutral(f"({'; '.join(shown)})")), most)


def _kind(schema: Any, depth: int = 0) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "anything"
    match schema:
        case {"enum": list(values)} if values:
            return " or ".join(json.dumps(each, ensure_ascii=False, default=str) for each in values)
        case {"anyOf": list(kinds)} | {"oneOf": list(kinds)}:
            return " or ".join(dict.fromkeys(_kind(each, depth + 1) for each in kinds))
        case {"type": "array", "items": items}:
            return f"list of {_kind(items, depth + 1)}"
        case {"properties": Mapping() as inside} if inside:
            return f"object ({'; '.join(f'{name}: {_kind(each, depth + 1)}' for name, each in inside.items())})"
        case {"type": list(names)}:
            return " or ".join(map(str, names))
        case {"type": str(name)}:
            return name if "format" not in schema else f"{name} ({schema['format']})"
    return "anything"

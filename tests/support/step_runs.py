"""Failed runs of one agent in which it can be learned which step broke them: mostly the words with code before a call
that fails."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGENT = "lookup_desk"
_START_NS = 1_790_000_000 * 10**9


@dataclass(frozen=True, slots=True)
class StepRun:
    """``request``: OTLP/JSON. ``guilty``: the span that breaks the run; ``named``: the one that a person named."""

    trace_id: str
    request: str
    guilty: str
    named: str


def step_runs(count: int, seed: int = 0, named_right: float = 0.9) -> Iterator[StepRun]:
    """``named_right``: how often the person names the guilty step; else any."""
    draw = random.Random(seed)
    for number in range(count):
        pairs = draw.randint(3, 5)
        broken = draw.randrange(pairs)
        trace_id = f"{seed + 1:016x}{number + 1:016x}"
        spans = [_span(trace_id, 0, 2 * pairs + 2, "invoke_agent", "When does the museum open?", "See the page.")]
        for pair in range(pairs):
            said = "Let me run ```open()``` on it." if pair == broken else "Let me look it up."
            spans.append(_span(trace_id, 2 * pair + 1, 1, "chat", "", said))
            result = {"error": "no such page"} if pair == broken else {"pages": [7]}
            spans.append(_span(trace_id, 2 * pair + 2, 1, "execute_tool", "", json.dumps(result)))
        spans.append(_span(trace_id, 2 * pairs + 1, 1, "chat", "", "See the page."))
        named = 2 * broken + 1 if draw.random() < named_right else draw.randint(1, 2 * pairs + 1)
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
        yield StepRun(trace_id, body, _id(trace_id, 2 * broken + 1), _id(trace_id, named))


def write(folder: Path, made: list[StepRun]) -> tuple[Path, Path]:
    """The labels, and the traces: two files."""
    labels, traces = folder / "steps.csv", folder / "traces.otlp.jsonl"
    labels.write_text("trace_id,span_id\n" + "".join(f"{each.trace_id},{each.named}\n" for each in made))
    traces.write_text("".join(f"{each.request}\n" for each in made))
    return labels, traces


def _id(trace_id: str, at: int) -> str:
    return f"{int(trace_id[-8:], 16):08x}{at + 1:08x}"


def _span(trace_id: str, at: int, seconds: int, operation: str, asked: str, said: str) -> dict[str, Any]:
    given = {"gen_ai.operation.name": operation, "gen_ai.agent.name": AGENT}
    if operation == "execute_tool":
        given |= {"gen_ai.tool.name": "find_page", "gen_ai.tool.call.result": said}
    else:
        for side, role, text in (("input", "user", asked), ("output", "assistant", said)):
            message = [{"role": role, "parts": [{"type": "text", "content": text}]}]
            given |= {f"gen_ai.{side}.messages": json.dumps(message)} if text else {}
    return {
        "traceId": trace_id,
        "spanId": _id(trace_id, at),
        "parentSpanId": _id(trace_id, 0) if at else "",
        "name": operation,
        "startTimeUnixNano": str(_START_NS + at * 10**9),
        "endTimeUnixNano": str(_START_NS + (at + seconds) * 10**9),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in given.items()],
    }

"""Sessions of one agent whose outcome can be learned: it went wrong where the agent refused, and seldom otherwise."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGENT = "order_desk"
METRIC = "session.goal_completion"
_START_NS = 1_790_000_000 * 10**9


@dataclass(frozen=True, slots=True)
class LearnableSession:
    """``requests``: OTLP/JSON, one for each trace."""

    id: str
    bad: bool
    requests: tuple[str, ...]


ASKED = ("Which order is it?", "What should it be instead?", "Is the address the same?")


def sessions(count: int, seed: int = 0, named: bool = True) -> Iterator[LearnableSession]:
    """``named``: whether their spans name them; if not, each is one trace alone, and its id that of the trace."""
    draw = random.Random(seed)
    for number in range(count):
        refused = draw.random() < 0.5
        traces = [f"{seed + 1:08x}{number:016x}{turn:08x}" for turn in range(draw.randint(2, 4) if named else 1)]
        session = f"s{number}" if named else None
        told = "I cannot do that, sorry." if refused else "Your order has been changed."
        answers = [*ASKED[: len(traces) - 1], told]
        requests = tuple(_request(each, session, number * 10 + at, answers[at]) for at, each in enumerate(traces))
        yield LearnableSession(session or traces[0], draw.random() < (0.85 if refused else 0.15), requests)


def write(folder: Path, made: list[LearnableSession], metric: str = METRIC) -> tuple[Path, Path]:
    """The traces, and the labels of all: two files."""
    traces, labels = folder / "traces.otlp.jsonl", folder / "labels.csv"
    traces.write_text("".join(f"{request}\n" for each in made for request in each.requests))
    column = "session_id" if metric.startswith("session.") else "trace_id"
    rows = "".join(f"{each.id},{metric},{'fail' if each.bad else 'pass'}\n" for each in made)
    labels.write_text(f"{column},metric,label\n{rows}")
    return traces, labels


def _request(trace_id: str, session: str | None, second: int, answer: str) -> str:
    at = _START_NS + second * 10**9
    texts = {"user": "Change my order", "assistant": answer}
    messages = {
        f"gen_ai.{side}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": texts[role]}]}])
        for side, role in (("input", "user"), ("output", "assistant"))
    }
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": AGENT, **messages}
    if session is not None:
        attributes["gen_ai.conversation.id"] = session
    span: dict[str, Any] = {
        "traceId": trace_id,
        "spanId": f"{second + 1:016x}",
        "name": f"invoke_agent {AGENT}",
        "kind": 1,
        "startTimeUnixNano": str(at),
        "endTimeUnixNano": str(at + 10**8),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})

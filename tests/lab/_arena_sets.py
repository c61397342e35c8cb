"""Labelled sets of the arena: truths, balanced draws, and traces without labels.

A *unit* is a session, a trace of ``bfcl``, or one side of an ``mcp-pairs`` pair.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab._sessions import _SESSION, _TRACE, DATA, is_even
from pandaeval_collector.judge.conversation import conversation
from pandaeval_otel.model import Kind, Trace, Trigger
from pandaeval_otel.normal.evidence import gather
from pandaeval_otel.normal.trace import Closing, build_trace
from pandaeval_otel.wire.otlp_json import decode_json, traces_from_json
from pandaeval_otel.wire.splitting import split_traces

SETS = ("tau2-policy", "tau2-pairs", "mcp-pairs", "agentrx-tau", "tau-bench", "bfcl")
HALVES = ("dev", "held")
_TRUTH = {"mcp-pairs": "chosen", "bfcl": "tool_calls_correct"}
_KIND = {"tau2-policy": "domain", "tau2-pairs": "domain", "mcp-pairs": "split", "bfcl": "category"}
_AGENT = "gen_ai.agent.name"
_NAMES = ("service.name", _AGENT)
_KEPT = ("telemetry.sdk.language",)
"""Resource attributes that do not reveal set, agent or label."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A run with its truth.

    ``kind``: for confusions. ``steps``: labelled wrong spans. ``case``: groups sessionless runs.
    """

    id: str
    truth: bool
    kind: str = ""
    pair: str = ""
    steps: tuple[str, ...] = ()
    case: str = ""

    @property
    def is_dev(self) -> bool:
        """Return whether :mod:`lab._sessions` puts it into the development half."""
        return is_even(self.case or self.id)


def opaque(name: str) -> str:
    """Return a stable neutral name."""
    return hashlib.sha256(f"arena {name}".encode()).hexdigest()[:16]


def units(name: str, rows: Iterable[dict[str, Any]]) -> list[Unit]:
    """Return a set's units by ID, from label rows."""
    verdict, kind = _TRUTH.get(name, "task_success"), _KIND.get(name)
    truths: dict[tuple[str, str], dict[str, Any]] = {}
    wrong: dict[str, list[dict[str, Any]]] = defaultdict(list)
    shapes: dict[str, str] = {}
    for row in rows:
        unit = row["session_id"] or row["trace_id"]
        if row["name"] == verdict:
            truths[unit, row.get("pair", "")] = row
        elif row["name"] == "failure":
            wrong[unit].append(row)
        elif row["name"] == "shape":
            shapes[unit] = row["value"]
    made = []
    for (unit, pair), row in sorted(truths.items()):
        steps = wrong[unit]
        root = next((step["value"] for step in steps if step["root_cause"]), "")
        about = str(row[kind]) if kind else root or shapes.get(unit, "")
        made.append(
            Unit(unit, bool(row["value"]), about, pair, tuple(step["span_id"] for step in steps), row.get("item", ""))
        )
    return made


def of_set(name: str) -> list[Unit]:
    """Return all units of a set in ``../shared/data``."""
    with lzma.open(DATA / name / "labels.jsonl.xz", "rt", encoding="utf-8") as lines:
        return units(name, map(json.loads, lines))


def draw(every: Sequence[Unit], half: str, count: int, seed: int) -> list[Unit]:
    """Draw ``count`` units of a half, equally correct and wrong.

    Both sides of a pair are drawn together. Larger draws contain smaller draws.
    """
    chance = random.Random(seed)
    mine = [unit for unit in every if unit.is_dev == (half == "dev")]
    if any(unit.pair for unit in mine):
        sides: dict[str, list[Unit]] = defaultdict(list)
        for unit in mine:
            sides[unit.pair].append(unit)
        pairs = sorted(name for name, both in sides.items() if {unit.truth for unit in both} == {True, False})
        chance.shuffle(pairs)
        drawn = [unit for name in pairs[: count // 2] for unit in sides[name]]
    else:
        chance.shuffle(mine)
        single = {unit.case or unit.id: unit for unit in reversed(mine)}
        right, wrong = ([unit for unit in single.values() if unit.truth is truth] for truth in (True, False))
        most = min(count // 2, len(right), len(wrong))
        drawn = [*right[:most], *wrong[:most]]
    return sorted(drawn, key=lambda unit: opaque(f"{seed} {unit.id}"))


# -- the traces, without hints -----------------------------------------------------------------------------------------


def lines_of(name: str, wanted: Iterable[str]) -> Iterator[str]:
    """Yield the unchanged requests of these units."""
    kept = frozenset(wanted)
    with lzma.open(DATA / name / "traces.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            if session_of(line) in kept:
                yield line


def session_of(line: str) -> str:
    """Return a request's session ID, else its trace ID."""
    name = _SESSION.search(line) or _TRACE.search(line)
    return "" if name is None else name[1]


def traces_of(lines: Iterable[str]) -> list[Trace]:
    """Return the traces of a session in order."""
    chunks: dict[bytes, list[tuple[bool, bytes]]] = defaultdict(list)
    for line in lines:
        for fragment in split_traces(traces_from_json(decode_json(line.encode())).SerializeToString()).fragments:
            chunks[fragment.trace_id].append((fragment.logs, fragment.chunk))
    built = (build_trace(gather(parts), Closing(Trigger.FILE)) for parts in chunks.values())
    return sorted((trace for trace in built if trace), key=lambda trace: trace.start_ns)


def neutral_line(line: str) -> str:
    """Return a request without names of set, service, agent and session."""
    request = json.loads(line)
    for resource in request["resourceSpans"]:
        attributes = resource["resource"]["attributes"]
        resource["resource"]["attributes"] = [
            _text("service.name", "service"),
            *(attribute for attribute in attributes if attribute["key"] in _KEPT),
        ]
        for scope in resource["scopeSpans"]:
            scope["scope"] = {"name": "recorded"}
            for span in scope["spans"]:
                span["attributes"] = [_neutral(attribute) for attribute in span["attributes"]]
                if span["name"].startswith("invoke_agent"):
                    span["name"] = "invoke_agent agent"
    return json.dumps(request)


def _neutral(attribute: dict[str, Any]) -> dict[str, Any]:
    key = attribute["key"]
    if key in _NAMES:
        return _text(key, "agent")
    if key == "gen_ai.conversation.id":
        return _text(key, opaque(attribute["value"]["stringValue"]))
    return attribute


def _text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


def write_traces(name: str, drawn: Sequence[Unit], path: Path) -> int:
    """Write the units' traces; return their number."""
    traces = set()
    with path.open("w", encoding="utf-8") as file:
        for line in lines_of(name, {unit.id for unit in drawn}):
            clean = neutral_line(line)
            traces.update(
                span["traceId"]
                for resource in json.loads(clean)["resourceSpans"]
                for scope in resource["scopeSpans"]
                for span in scope["spans"]
            )
            file.write(clean + "\n")
    return len(traces)


# -- the first wrong step ----------------------------------------------------------------------------------------------


def places(traces: Sequence[Trace]) -> tuple[dict[str, int], dict[str, str]]:
    """Return span places, and spans by step: ``"7"`` is a call, ``"turn 2"`` an answer."""
    whole = conversation(traces, "").trace
    spans = [span for trace in traces for span in trace.spans]
    spans.sort(key=lambda span: (span.start_ns, span.kind is not Kind.AGENT))
    steps = {str(number): call.span_id for number, call in enumerate(whole.tool_calls, 1)}
    starts = [turn.start_ns for turn in whole.turns]
    for number, (start, until) in enumerate(zip(starts, [*starts[1:], 1 << 63], strict=True), 1):
        answers = [span.span_id for span in spans if span.kind is Kind.LLM and start <= span.start_ns < until]
        steps[f"turn {number}"] = answers[-1] if answers else ""
    return {span.span_id: place for place, span in enumerate(spans)}, steps


def distance(unit: Unit, step: str | None, traces: Sequence[Trace]) -> int | None:
    """Return the distance in spans to the nearest labelled step, or ``None``."""
    at, steps = places(traces)
    span = steps.get(step or "", "")
    apart = [abs(at[span] - at[wrong]) for wrong in unit.steps if span in at and wrong in at]
    return min(apart, default=None)

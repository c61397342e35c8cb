"""Coverage-guided fuzzing of dialects and whole traces, by atheris (libFuzzer).

    pip install atheris==3.0.0
    python tests/lab/proofs/fuzz_dialects.py -max_total_time=3600 -seed=1

The input defines spans with known keys and any values. Fails for exceptions, lost spans and order dependence.
Arguments are libFuzzer's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import atheris

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "collector")]

with atheris.instrument_imports(include=["pandaeval_otel"]):
    from pandaeval_otel.base import semconv
    from pandaeval_otel.base.plugins import find
    from pandaeval_otel.model.raw import RawEvent, RawLog, RawSpan, Resource, Scope
    from pandaeval_otel.normal.spans import normalize
    from pandaeval_otel.normal.trace import Closing, trace_of

DIALECTS = find("pandaeval_otel.dialects", "DIALECT")


def _constants() -> list[str]:
    """Return every key constant of semconv and dialects."""
    modules = [semconv, *(module for name, module in list(sys.modules.items()) if ".dialects." in name)]
    found: set[str] = set()
    for module in modules:
        for name, value in vars(module).items():
            if name.isupper() or name.startswith("_"):
                for item in value if isinstance(value, tuple | list | frozenset | set | dict) else (value,):
                    if isinstance(item, str) and "." in item and " " not in item and len(item) < 80:
                        found.add(item)
    return sorted(found)


KEYS = _constants()
SCOPES = sorted({scope for dialect in DIALECTS for scope in dialect.scopes} | {"", "other"})
NAMES = sorted(
    {name for dialect in DIALECTS for name in dialect.names} | {"", "chat ", "execute_tool ", "invoke_agent "}
)
WORDS = (
    "chat",
    "execute_tool",
    "invoke_agent",
    "LLM",
    "TOOL",
    "AGENT",
    "user",
    "assistant",
    "tool",
    "text",
    "tool_call",
)
FIELDS = ("role", "parts", "content", "type", "name", "id", "arguments", "result", "response", "tool_calls", "function")


def _value(data: Any, depth: int = 0) -> Any:
    kind = data.ConsumeIntInRange(0, 11)
    if kind == 0:
        return None
    if kind == 1:
        return data.ConsumeInt(8)
    if kind == 2:
        return data.ConsumeFloat()
    if kind == 3:
        return data.ConsumeBool()
    if kind == 4:
        return data.ConsumeBytes(16)
    if kind == 5:
        return data.PickValueInList(list(WORDS))
    if kind == 6 and depth < 4:
        return [_value(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 4))]
    if kind in (7, 8) and depth < 4:
        return {
            data.PickValueInList(list(FIELDS)): _value(data, depth + 1) for _ in range(data.ConsumeIntInRange(0, 5))
        }
    if kind in (9, 10) and depth < 4:
        text = json.dumps(_value(data, depth + 1), default=str)
        return text[: data.ConsumeIntInRange(0, len(text))] if kind == 10 else text
    return data.ConsumeUnicode(40)


def _attributes(data: Any) -> dict[str, Any]:
    return {_key(data): _value(data) for _ in range(data.ConsumeIntInRange(0, 8))}


def _key(data: Any) -> str:
    if data.ConsumeIntInRange(0, 9) == 0:
        root = data.PickValueInList([root for dialect in DIALECTS for root in dialect.roots] or ["x"])
        return f"{root}.{data.ConsumeIntInRange(0, 50)}.{data.PickValueInList(list(FIELDS))}"
    return str(data.PickValueInList(KEYS))


def _span(data: Any, number: int) -> tuple[RawSpan, list[RawLog]]:
    span_id = f"{number + 1:016x}"
    name = data.PickValueInList(NAMES) + data.ConsumeUnicode(8)
    scope = Scope(data.PickValueInList(SCOPES))
    events = [RawEvent(_key(data), 0, _attributes(data)) for _ in range(data.ConsumeIntInRange(0, 2))]
    logs = [
        RawLog("a" * 32, span_id, _key(data), 0, _value(data), _attributes(data), scope=scope)
        for _ in range(data.ConsumeIntInRange(0, 2))
    ]
    parent = data.ConsumeIntInRange(0, 8)
    span = RawSpan(
        trace_id="a" * 32,
        span_id=span_id,
        parent_id=f"{parent:016x}" if parent else "",
        name=name,
        kind=data.ConsumeIntInRange(0, 5),
        start_ns=data.ConsumeIntInRange(0, 1000),
        end_ns=data.ConsumeIntInRange(0, 1000),
        status_code=data.ConsumeIntInRange(0, 2),
        status_message=data.ConsumeUnicode(8),
        attributes=_attributes(data),
        events=events,
        resource=Resource({"service.name": "fuzz"}),
        scope=scope,
        flags=data.ConsumeIntInRange(0, 0x3FF),
    )
    return span, logs


def one_input(raw: bytes) -> None:
    data = atheris.FuzzedDataProvider(raw)
    made = [_span(data, number) for number in range(data.ConsumeIntInRange(1, 6))]
    spans = [normalize(span, logs) for span, logs in made]
    for (raw_span, _), span in zip(made, spans, strict=True):
        assert span.span_id == raw_span.span_id, "a span was lost"
        assert not any("failed" in note for note in span.notes if note.startswith("dialect ")), span.notes
    again = [normalize(span, logs) for span, logs in reversed(made)]
    assert repr(trace_of(spans, "d", Closing())) == repr(trace_of(again, "d", Closing())), "the order of spans matters"


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()

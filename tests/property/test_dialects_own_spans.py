"""Each dialect with any values under its own keys."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from pandaeval_otel.base import semconv
from pandaeval_otel.dialects import Dialect
from pandaeval_otel.model.raw import STATUS_OK, RawEvent, RawLink, RawLog, RawSpan, Scope
from pandaeval_otel.normal.spans import dialects

TRACE, SPAN = "a" * 32, "b" * 16
ROUNDS = 400
MEMBERS = """
    role content parts type text tool_calls function name arguments args id tool_call_id kwargs messages message toolUse
    toolResult toolUseId input output inputs outputs result response reasoningContent reasoningText items system
    functionCall functionResponse function_call function_response thought contents config candidates toolCallId toolName
    event.name request model llmContent responseParts error status tools tool_definitions instructions blocks data
    tool_name tool_call origin meta chat_history query documents usage uri value body gen_ai.prompt
"""
_MEMBERS = MEMBERS.split()
SCALARS: list[Any] = [
    *(None, "", "{", "[]", "{}", "null", "x", "user", "assistant", "tool", "text", "tool_call", "<elided>", "\ud800"),
    *(0, -1, 7, 2**70, 1.5, float("nan"), True, False, b"\xff", "[{", "é" * 50, "x" * 5000, '"x"', "ToolCall(a='b'"),
]
DEPTH = 4


def _value(rng: random.Random, words: list[str], depth: int = 0) -> Any:
    choice = rng.random()
    if depth >= DEPTH or choice < 0.35:
        return rng.choice(SCALARS) if rng.random() < 0.7 else rng.choice(words)
    if choice < 0.6:
        items = [_value(rng, words, depth + 1) for _ in range(rng.randrange(4))]
        return tuple(items) if rng.random() < 0.3 else items
    if choice < 0.85:
        keys = [rng.choice(_MEMBERS if rng.random() < 0.8 else words) for _ in range(rng.randrange(1, 6))]
        return {key: _value(rng, words, depth + 1) for key in keys}
    inner = _value(rng, words, depth + 1)
    text = json.dumps(inner, default=str) if rng.random() < 0.8 else repr(inner)
    return text[: rng.randrange(len(text) + 1)] if rng.random() < 0.3 else text


def _words(module: ModuleType) -> list[str]:
    """Return all strings in the module's constants."""
    found: set[str] = set()
    waiting: list[Any] = [value for name, value in vars(module).items() if name.lstrip("_").isupper()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, re.Pattern):
            continue
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, (tuple, list, set, frozenset)):
            waiting += value
    return sorted(found)


CONVENTIONS = [word for word in _words(semconv) if "." in word]


def _span(rng: random.Random, dialect: Dialect, words: list[str]) -> tuple[RawSpan, list[RawLog]]:
    keys = words * 3 + CONVENTIONS

    def attributes(most: int) -> dict[str, Any]:
        return {rng.choice(keys): _value(rng, words) for _ in range(rng.randrange(most))}

    scope = rng.choice([*dialect.scopes, "x", ""]) + rng.choice(["", "", "x", ".tracer"])
    name = rng.choice([*dialect.names, *words, "x", ""]) + rng.choice(["", "", "interaction", " m", ".run"])
    events = [RawEvent(rng.choice(keys), 1, attributes(6)) for _ in range(rng.randrange(4))]
    span = RawSpan(
        TRACE,
        SPAN,
        parent_id=rng.choice(["", "c" * 16]),
        name=name,
        status_code=rng.randrange(3),
        attributes={**attributes(25), rng.choice(keys): rng.choice(words or ["x"])},
        events=events,
        links=[RawLink(rng.choice([TRACE, "d" * 32]), "e" * 16)] * rng.randrange(2),
        scope=Scope(scope),
    )
    logs = [
        RawLog(TRACE, SPAN, rng.choice(keys), 1, _value(rng, words), attributes(6)) for _ in range(rng.randrange(3))
    ]
    return span, logs


@pytest.mark.parametrize("dialect", dialects(), ids=lambda dialect: dialect.name)
def test_any_values_under_own_keys_are_read_without_errors_and_repeatably(dialect: Dialect) -> None:
    words = _words(sys.modules[type(dialect).__module__]) or ["x"]
    rng = random.Random(dialect.name)
    for _ in range(ROUNDS):
        span, logs = _span(rng, dialect, words)
        assert dialect.read(span, logs) == dialect.read(span, logs) or "nan" in repr((span, logs))


@pytest.mark.parametrize(
    "dialect", [each for each in dialects() if hasattr(each, "silent")], ids=lambda dialect: dialect.name
)
def test_a_dialect_reads_nothing_from_attributes_that_it_is_silent_about(dialect: Any) -> None:
    words = _words(sys.modules[type(dialect).__module__]) or ["x"]
    rng = random.Random(dialect.name)
    silent = 0
    for _ in range(ROUNDS):
        span, _logs = _span(rng, dialect, words)
        bare = replace(span, events=(), status_code=STATUS_OK)
        if dialect.silent(bare.attributes):
            silent += 1
            assert dialect.read(bare, ()) is None
    assert silent

"""An error as one plain line: what went wrong, without the stack and the packing around it."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

_TRACEBACK = "Traceback (most recent call last)"
_LONGEST_OBJECT = 4000
_LONGEST = 300
_SAYS = ("message", "error", "error_message", "detail", "details", "reason")
_DEPTH, _MOST = 4, 2


def plain_error(text: str) -> str:
    """Shortens an error to some 300 characters on one line. A stack is left out; of an object (JSON, or as Python
    writes it) that ends the text, what its fields say went wrong is kept. What cannot be read stays as it is. Never
    raises."""
    line = unwrapped(" ".join(_without_stack(text).split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def unwrapped(line: str) -> str:
    """The line, with what an object that ends it says went wrong in the place of that object. Never raises."""
    before, brace, _ = line.partition("{")
    if brace and (said := ": ".join(_said(_object(line[len(before) :])))):
        return f"{before.rstrip()} {said}" if before.strip() else said
    return line


def _without_stack(text: str) -> str:
    before, stack, after = text.partition(_TRACEBACK)
    if not stack:
        return text
    lines = [line for line in after.splitlines() if line.strip()]
    return before if before.strip() else lines[-1] if len(lines) > 1 else text


def _object(text: str) -> Any:
    if len(text) > _LONGEST_OBJECT:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return None


def _said(value: Any) -> list[str]:
    """The first few different texts that say what went wrong, outermost first."""
    found = dict.fromkeys(_texts(value, _DEPTH))
    return [" ".join(text.split()) for text in found][:_MOST]


def _texts(value: Any, depth: int) -> Iterator[str]:
    if not isinstance(value, dict) or depth == 0:
        return
    for key in _SAYS:
        held = value.get(key)
        if isinstance(held, str) and held.strip():
            yield held
    for held in value.values():
        yield from _texts(held, depth - 1)

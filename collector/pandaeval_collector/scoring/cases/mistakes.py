"""Sentences on what is wrong with a case file: what stands there, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel

from pandaeval_collector.scoring.cases.model import (
    Case,
    CountedCalls,
    ExpectedCall,
    Interaction,
    OutputFormat,
    Recorded,
    Suite,
)

Place = Sequence[str | int]
_PARTS: Mapping[str, tuple[str, type[BaseModel], str]] = {
    "cases": ("a case", Case, "{id: refund-3}"),
    "expected_tools": ("an expected call", ExpectedCall, "{tool_name: search}"),
    "interactions": ("an interaction", Interaction, "{expected_tools: []}"),
    "output_format": ("output_format", OutputFormat, "{type: json}"),
    "counted_calls": ("counted_calls", CountedCalls, "{tools: changing}"),
    "recorded": ("recorded", Recorded, "{messages: [...]}"),
}
"""By the field that holds them: what parts are called, and how one is written."""
_MAPS = {
    "inputs": "{task: Send invoice inv_1}",
    "parameters": "{to: Bern}",
    "thresholds": "{tool_correctness: 0.75}",
    "expected_outcome": "{tools_called: [search]}",
}
_LISTS = {"cases": "[{id: refund-3}]", "expected_tools": "[{tool_name: search}]", "graders": "[end_state]"}
_MEANT: Mapping[type[BaseModel], Mapping[str, tuple[str, ...]]] = {
    Case: {
        "inputs: {task: ...}": ("task", "input", "prompt", "question", "query", "message", "user"),
        "expected_answer": ("expected", "answer", "output", "expected_output", "reference", "ground_truth"),
        "expected_tools": ("tools", "tool_calls", "expected_calls", "expected_tool_calls"),
        "graders": ("metrics", "checks", "assertions", "asserts", "evaluators"),
        "id": ("name", "case", "case_id", "title"),
        "source or recorded": ("trace", "trace_id", "trace_ids", "session", "session_id"),
    },
    ExpectedCall: {
        "tool_name": ("tool", "function", "tool_call"),
        "parameters": ("args", "arguments", "input", "inputs", "params", "kwargs"),
    },
}
"""What other tools call these fields."""
_FORMS = ("tuple[", "dict[", "literal[")
"""How pydantic tells, within a place, of which form of a field it speaks."""


def sentence(problem: Mapping[str, Any]) -> str:
    """What is wrong by one of pydantic's errors, and the cure."""
    place, given = problem["loc"], problem["input"]
    match problem["type"]:
        case "extra_forbidden":
            return _unknown(place)
        case "missing":
            return "is missing"
        case "too_short":
            return "is empty; write a list of cases, such as - id: refund-3"
        case "string_too_short":
            return "is empty"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"is no map, such as {_a_map(place)}, but {given!r:.60}"
        case "tuple_type" | "list_type" if given is None:
            return f"is empty; write a list, such as {_a_list(place)}"
        case "tuple_type" | "list_type":
            return f"is no list, such as {_a_list(place)}, but {given!r:.60}"
        case "value_error":
            return str(problem["ctx"]["error"])
        case "string_type" if place[-1] == "[key]":
            return f"the key {given!r} is no text; put it into quotes"
        case "string_type":
            return f"is no text, but {given!r:.60}{'; put it into quotes' if isinstance(given, int | float) else ''}"
        case _:
            text = str(problem["msg"])
            return f"{text[:1].lower()}{text[1:]}, and is {given!r:.60}"


def as_told(problems: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Without what follows from others. Of a field that may have several forms one mistake is told, that of the form
    which fits best; a list of which nothing is left, since all that was in it is told already, is no fault of its
    own."""
    forms: dict[tuple[str | int, ...], list[Mapping[str, Any]]] = {}
    for each in problems:
        place = tuple(each["loc"])
        at = next((at for at, part in enumerate(place) if str(part).startswith(_FORMS)), None)
        if at is not None:
            forms.setdefault(place[:at], []).append({**each, "loc": (*place[:at], *place[at + 1 :])})
        elif each["type"] != "too_short" or len(problems) == 1:
            yield each
    for field, several in forms.items():
        inside = [each for each in several if len(each["loc"]) > len(field)]
        words = [each for each in several if each["type"] == "literal_error"]
        yield from inside or words[:1] or several[:1]


def _unknown(place: Place) -> str:
    held = [part for part in place[:-1] if part in _PARTS]
    called, model, _ = _PARTS[str(held[-1])] if held else ("a case file", Suite, "")
    name = str(place[-1])
    for cure, others in _MEANT.get(model, {}).items():
        if name.lower() in others:
            return f"is no field of {called}; write {cure}"
    found = get_close_matches(name, [*model.model_fields, *Case.model_fields, *Suite.model_fields], 1)
    return (
        f"is no field of {called}{f'; did you mean {found[0]}?' if found else '; `pandaeval cases schema` lists them'}"
    )


def _a_map(place: Place) -> str:
    field = next((part for part in reversed(place) if isinstance(part, str)), "cases")
    return _PARTS[field][2] if field in _PARTS else _MAPS.get(field, "{key: value}")


def _a_list(place: Place) -> str:
    return _LISTS.get(str(place[-1]), "[a, b]")

"""Makes case files from traces, and reads them with source lines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NoReturn

import yaml
from pydantic import BaseModel, ValidationError

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.untrusted.user_files import read_text
from pandaeval_collector.base.untrusted.yaml_text import (
    TWICE,
    WORDS,
    BadTextError,
    Place,
    Spot,
    YamlText,
    dotted,
    parse,
)
from pandaeval_collector.config import closest
from pandaeval_collector.judge.redact import Hide, redact, redact_value
from pandaeval_lab.cases import model as shapes
from pandaeval_lab.cases.agent_entry import AgentEntry
from pandaeval_lab.cases.graders import CaseFault, complete, known_graders

# Errors of a case file, with the present content and a correction.
_PARTS: Mapping[str, tuple[str, type[BaseModel], str]] = {
    "agents": ("an agent", AgentEntry, "{url: 'http://127.0.0.1:8000/chat'}"),
    "cases": ("a case", shapes.Case, "{id: refund-3}"),
    "expected_tools": ("an expected call", shapes.ExpectedCall, "{tool_name: search}"),
    "interactions": ("an interaction", shapes.Interaction, "{expected_tools: []}"),
    "output_format": ("output_format", shapes.OutputFormat, "{type: json}"),
    "counted_calls": ("counted_calls", shapes.CountedCalls, "{tools: changing}"),
    "recorded": ("recorded", shapes.Recorded, "{messages: [...]}"),
    "mocks": ("a mock", shapes.Mock, "{result: done}"),
    "scenario": ("scenario", shapes.Scenario, "{goal: Get the money for order 17 back}"),
}
"""The name, model and an example of each part, by the field that holds it."""
_MAPS = {
    "inputs": "{task: Send invoice inv_1}",
    "parameters": "{to: Bern}",
    "thresholds": "{tool_correctness: 0.75}",
    "expected_outcome": "{tools_called: [search]}",
}
_LISTS = {
    "results": "[pending, done]",
    "cases": "[{id: refund-3}]",
    "expected_tools": "[{tool_name: search}]",
    "graders": "[end_state]",
}
_FORMS = ("tuple[", "dict[", "literal[")
"""How pydantic marks, within an error's place, the form of a field."""
_MOST_BYTES = 64 << 20
_SUFFIXES = (".yaml", ".yml", ".json")
_CASES = re.compile(r"""^(?:cases|\{?[ ]{0,8}"cases"):""", re.MULTILINE)
_OF_A_FILE = {"name", "graders_from", "cases"}
"""Fields that can differ between the files of a run."""
_CURE = "write a list of cases, such as - id: refund-3, or a map with the key cases"
_OTLP = ("resourceSpans", "resource_spans", "resourceLogs")
_MOST_CALLS = 500
_HEAD = """\
# Made from a recorded run by `pandaeval cases`; secrets were removed.
# recorded.calls holds the calls of that run with their results. `pandaeval cases run` returns these results to tools
# that the agent has wrapped with `mocked`. Add the results of other calls to "mocks".
"""
_ABSENT = """\
# A trial fails if it has a finding of "absent" again. You can add further expectations, such as expected_tools.
"""
_OPEN = """\
# The recording does not show the right actions of the agent:
#   1. Write expected_tools (the calls of tools that change something; [] for none), or an expected outcome.
#   2. Remove the fields that you filled in from "open", or remove the line. Until then, no trial passes or fails.
"""


def sentence(problem: Mapping[str, Any]) -> str:
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
            field = next((part for part in reversed(place) if isinstance(part, str)), "cases")
            example = _PARTS[field][2] if field in _PARTS else _MAPS.get(field, "{key: value}")
            return f"is not a map, such as {example}, but {given!r:.60}"
        case "tuple_type" | "list_type":
            example = _LISTS.get(str(place[-1]), "[a, b]")
            if given is None:
                return f"is empty; write a list, such as {example}"
            return f"is not a list, such as {example}, but {given!r:.60}"
        case "value_error":
            return str(problem["ctx"]["error"])
        case "string_type" if place[-1] == "[key]":
            return f"the key {given!r} is not a text; put it into quotes"
        case "string_type":
            return f"is not a text, but {given!r:.60}{'; put it into quotes' if isinstance(given, int | float) else ''}"
        case _:
            text = str(problem["msg"])
            return f"{text[:1].lower()}{text[1:]}, and is {given!r:.60}"


def merged_form_errors(problems: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
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
    called, model, _ = _PARTS[str(held[-1])] if held else ("a case file", shapes.Suite, "")
    name = str(place[-1])
    meant = closest(name, [*model.model_fields, *shapes.Case.model_fields, *shapes.Suite.model_fields])
    cure = f"did you mean {meant}?" if meant else "`pandaeval cases schema` lists them"
    return f"is not a field of {called}; {cure}"


def read_suite(path: Path, modules: tuple[str, ...] = ()) -> shapes.Suite:
    """Read the cases of a YAML or JSON file: a list, a map with ``cases``, or a case.

    ``modules``: the user's own metrics. Raises ``UserError``, with a line for each problem.
    """
    text = read_text(path, "name a case file (docs/guides/cases.md)", _MOST_BYTES)
    known = [metric.name for metric in known_graders(modules)]
    return _suite(text, path, known)


def case_files(patterns: Iterable[str]) -> list[Path]:
    """Return the files of paths, folders and patterns. Raises ``UserError`` if there is no file."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern)
        if path.is_dir():
            files = sorted(each for each in path.rglob("*") if _holds_cases(each))
        else:
            is_pattern = has_magic(pattern) and not path.exists()
            files = sorted(map(Path, glob(pattern, recursive=True))) if is_pattern else [path]
        if not files:
            raise UserError(f"{pattern}: no case file found; name YAML or JSON files with the key cases, or a folder")
        found.update(dict.fromkeys(files))
    if not found:
        raise UserError("no case file was given; name a file, a folder or a pattern")
    return [*found]


def _holds_cases(path: Path) -> bool:
    """Return whether a file of a folder is a case file: YAML or JSON with ``cases`` at the top level."""
    if path.suffix not in _SUFFIXES or not path.is_file():
        return False
    try:
        return _CASES.search(read_text(path, "", _MOST_BYTES)) is not None
    except UserError:
        return False


def read_suites(paths: Sequence[Path], modules: tuple[str, ...] = ()) -> shapes.Suite:
    """Read case files as a suite. Raises ``UserError``."""
    suites = [read_suite(path, modules) for path in paths]
    first, cases, places = suites[0], list[shapes.Case](), dict[str, Path]()
    for path, suite in zip(paths, suites, strict=True):
        for name in shapes.Suite.model_fields.keys() - _OF_A_FILE:
            if getattr(suite, name) != getattr(first, name):
                raise UserError(f"{path}: {name} differs from {paths[0]}; run these files separately")
        for case in suite.cases:
            if case.id in places:
                raise UserError(f"{path}: the id {case.id} is also in {places[case.id]}; rename one of the cases")
            places[case.id] = path
            cases.append(case)
    names = {suite.name for suite in suites}
    return first.model_copy(update={"name": ", ".join(sorted(names - {""})), "cases": tuple(cases)})


def _suite(text: str, path: Path, known: Collection[str]) -> shapes.Suite:
    if any(f'"{key}"' in text[:200] for key in _OTLP):
        raise UserError(
            f"{path}: contains traces, not cases; pass cases with --cases, and traces as arguments of evaluate"
        )
    if not text.strip():
        raise UserError(f"{path}: is empty; {_CURE}")
    try:
        content = read_json(text) if path.suffix == ".json" else parse(text)
    except BadTextError as error:
        line = f":{error.spot.line}" if error.spot else ""
        raise UserError(f"{path}{line}: {error}") from error
    given, lines = content.value, content.lines
    inside: Place = ()
    if isinstance(given, list):
        given, inside = {"cases": given}, ("cases",)
    elif isinstance(given, dict) and "id" in given and "cases" not in given:
        given, inside = {"cases": [given]}, ("cases", 0)
    if not isinstance(given, dict):
        raise UserError(f"{path}: contains no cases; {_CURE}")
    try:
        suite, faults = complete(shapes.Suite.model_validate(given), known)
    except ValidationError as error:
        problems = merged_form_errors(error.errors(include_url=False))
        faults = [(each["loc"], sentence(each)) for each in problems]
        raise UserError(_placed(path, faults, lines, inside)) from error
    if faults:
        raise UserError(_placed(path, faults, lines, inside))
    return suite


def read_json(text: str) -> YamlText:
    try:
        held = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadTextError(f"is not valid JSON: {error.msg}", Spot(error.lineno, error.colno)) from error
    except (ValueError, RecursionError) as error:
        raise BadTextError(f"is not valid JSON: {error}") from error
    try:
        content = parse(text.expandtabs(2))
    except BadTextError as error:
        if TWICE in str(error):
            raise
        content = YamlText()  # JSON that is not YAML, such as lone surrogates, gets no line numbers
    content.value = held
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _placed(path: Path, faults: Iterable[CaseFault], lines: dict[Place, int], inside: Place) -> str:
    found = [(_line(place, lines, inside), place, text) for place, text in faults]
    fault_lines = []
    for line, place, text in sorted(found, key=lambda each: each[0] or 0):
        fault_lines.append(f"{path}{f':{line}' if line else ''}: {dotted(place)}: {text}")
    return "\n".join(fault_lines)


def _line(place: Place, lines: dict[Place, int], inside: Place) -> int | None:
    found = tuple(place[len(inside) :])
    if "graders" in found and found[: found.index("graders") + 1] not in lines:  # another spelling of the list
        found = (*found[: found.index("graders")], "grader")
    while found not in lines and found:
        found = found[:-1]
    return lines.get(found)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


for _tag, _pattern, _first in WORDS:
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def freeze(
    traces: Sequence[Mapping[str, Any]],
    case_id: str,
    *,
    absent: Mapping[str, str] | None = None,
    hide: Hide = redact,
) -> dict[str, Any]:
    """Make a case from a run, its first trial. Raises ``ValueError`` without captured content.

    ``traces``: as in `pandaeval inspect --format json`, ordered, at least one. ``hide``: redacts texts. ``absent``: a
    finding that no trial may have; it makes the case runnable.
    """
    runs = [redact_value(trace, hide) for trace in traces]
    tools = {tool["name"]: tool for run in runs for tool in run["tools"] if tool["name"]}
    ids = [str(trace["trace_id"]) for trace in traces]
    messages: list[str] = []
    for run in runs:
        user_messages = [turn["user"] for turn in run["turns"] if turn["user"]]
        messages += user_messages or ([run["input"]] if run["input"] else [])
    names = {"tool_name": "name", "parameters": "arguments", "result": "result"}
    calls = [
        {name: call[key] for name, key in names.items()} | ({"error": call["error"]} if call["error"] else {})
        for run in runs
        for call in run["tool_calls"]
    ][:_MOST_CALLS]
    if not messages and not calls:
        raise ValueError("the run cannot become a case, because neither a user message nor a tool call was captured")
    session = traces[0].get("session_id")
    case = {
        "id": case_id,
        "description": absent["reason"] if absent else "",
        "source": f"session {redact_value(session, hide)}" if session and len(traces) > 1 else f"trace {ids[0]}",
        "kind": "regression",
        "inputs": {"task": messages[0]} if messages else {},
        "counted_calls": {"tools": "changing", "failed": False},
        "tool_sequence_matters": False,
        **({"absent": [absent]} if absent else {"graders": ["run_ended"], "open": ["expected_tools"]}),
        "unmocked": "recorded",
        "recorded": {
            "trace_ids": ids,
            "tools": [
                {key: tool[key] for key in ("name", "description", "parameters") if tool[key]}
                for tool in tools.values()
            ],
            "messages": messages,
            "calls": calls,
            "answer": next((run["output"] for run in reversed(runs) if run["output"]), None),
        },
    }
    shapes.Case.model_validate(case)
    return case


def case_file(cases: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a case file, a case at a time, with instructions at its top."""
    begun = False
    for case in cases:
        if not begun:
            yield _HEAD + (_OPEN if "open" in case else _ABSENT) + "cases:\n"
        begun = True
        text: str = yaml.dump({"cases": [dict(case)]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        yield text.removeprefix("cases:\n")

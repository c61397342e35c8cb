"""Case files, read with the place of everything: whatever is wrong with one is told at once, with its line."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pandaeval_collector.cases.graders import complete
from pandaeval_collector.cases.model import Case, Suite
from pandaeval_collector.errors import UserError
from pandaeval_collector.metric import registry

Path_ = tuple[str | int, ...]
_MOST_BYTES = 64 << 20
_MAP = "tag:yaml.org,2002:map"


class CaseFileError(UserError):
    """A case file that cannot be used; a line for each problem."""


class _Loader(yaml.SafeLoader):
    """YAML with the words of JSON: no dates, no ``yes`` for true, no ``12:30`` for 750, which nobody means in the
    arguments of a call."""


WORDS = tuple(
    (tag, re.compile(f"^(?:{pattern})$"), first)
    for tag, pattern, first in (
        ("bool", "true|false|True|False", [*"tTfF"]),
        ("int", "-?(?:0|[1-9][0-9]*)", [*"-0123456789"]),
        ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", [*"-0123456789"]),
        ("null", "null|~|", ["n", "~", ""]),
        ("merge", "<<", ["<"]),
    )
)
"""What is no text although no quotes stand around it: tag, pattern, first characters."""
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in WORDS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def read_suite(path: Path, modules: tuple[str, ...] = ()) -> Suite:
    """The cases of a file, YAML or JSON: a list, a map with ``cases``, or one case. ``modules``: the user's own
    metrics, which may be graders. Raises :class:`CaseFileError`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise CaseFileError(f"{path}: is larger than {_MOST_BYTES >> 20} MiB; take cases apart into several files")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CaseFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CaseFileError(f"{path}: is not UTF-8 text ({error.reason})") from error
    known = [metric.name for metric in registry(modules).values() if metric.level == "trial"]
    return _suite(text, path, known)


def _suite(text: str, path: Path, known: Collection[str]) -> Suite:
    given, lines = _parsed(text.expandtabs(2) if path.suffix == ".json" else text, path)
    if path.suffix == ".json":  # halves of characters are JSON, and no YAML
        given = json.loads(text)
    inside: Path_ = ()
    if isinstance(given, list):
        given, inside = {"cases": given}, ("cases",)
    elif isinstance(given, dict) and "id" in given and "cases" not in given:
        given, inside = {"cases": [given]}, ("cases", 0)
    if not isinstance(given, dict):
        raise CaseFileError(f"{path}: holds no cases; write a list of them, or a map with the key cases")
    try:
        suite, faults = complete(Suite.model_validate(given), known)
    except ValidationError as error:
        raise CaseFileError("\n".join(_told(error, path, lines, inside))) from error
    if faults:
        raise CaseFileError("\n".join(_placed(path, place, text, lines, inside) for place, text in faults))
    return suite


def _parsed(text: str, path: Path) -> tuple[Any, dict[Path_, int]]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines: dict[Path_, int] = {}
        if node is not None:
            twice = [*_walk(node, (), lines, set())]
            if twice:
                raise CaseFileError(
                    "\n".join(f"{path}:{line}: {name} is given twice; keep one" for name, line in twice)
                )
        return (None if node is None else loader.construct_document(node)), lines
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        line = f":{at.line + 1}" if at is not None else ""
        raise CaseFileError(f"{path}{line}: is not valid YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise CaseFileError(f"{path}: is not valid YAML: {str(error).splitlines()[0]}") from error
    except (ValueError, RecursionError) as error:
        raise CaseFileError(f"{path}: is not valid YAML: {error}") from error


def _walk(node: yaml.Node, path: Path_, lines: dict[Path_, int], seen: set[int]) -> Iterator[tuple[str, int]]:
    """Notes the line of everything; yields keys that are given twice, with their lines."""
    lines[path] = node.start_mark.line + 1
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        known: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in known and key.value != "<<":
                yield key.value, key.start_mark.line + 1
            known.add(key.value)
            yield from _walk(value, (*path, key.value), lines, seen)
            lines[(*path, key.value)] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for at, item in enumerate(node.value):
            yield from _walk(item, (*path, at), lines, seen)


def _told(error: ValidationError, path: Path, lines: dict[Path_, int], inside: Path_) -> Iterator[str]:
    for each in error.errors(include_url=False):
        yield _placed(path, each["loc"], _sentence(each), lines, inside)


def _placed(path: Path, place: Path_, text: str, lines: dict[Path_, int], inside: Path_) -> str:
    line = _line(place, lines, inside)
    return f"{path}{f':{line}' if line else ''}: {_dotted(place)}: {text}"


def _line(place: Path_, lines: dict[Path_, int], inside: Path_) -> int | None:
    """Of the value, or of the innermost that holds it and stands in the file."""
    found = tuple(place[len(inside) :])
    if "graders" in found and found[: found.index("graders") + 1] not in lines:  # its other spelling
        found = (*found[: found.index("graders")], "grader")
    while found not in lines and found:
        found = found[:-1]
    return lines.get(found)


def _dotted(place: Path_) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def _sentence(problem: Any) -> str:
    """What is wrong and what to write instead."""
    match problem["type"]:
        case "extra_forbidden":
            return f"is no field of a case{_meant(problem['loc'][-1])}"
        case "missing":
            return "is missing"
        case "value_error":
            return str(problem["ctx"]["error"])
        case _:
            text = str(problem["msg"])
            return text[:1].lower() + text[1:]


def _meant(name: str | int) -> str:
    from difflib import get_close_matches

    found = get_close_matches(str(name), [*Case.model_fields, *Suite.model_fields], 1)
    return f"; did you mean {found[0]}?" if found else "; `pandaeval cases schema` lists them"
